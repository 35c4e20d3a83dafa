#!/usr/bin/env bash
# The client's cases at both releases, then the tools, each as its script would start it.
set -uo pipefail
java=(java -Xmx300m -XX:TieredStopAtLevel=1)
code=0
"${java[@]}" -Drelease=3.9.2 -cp "$OLD" Client "$@" || code=$?
((code == 0 || code == 3)) || exit $code
"${java[@]}" -Drelease=4.4.0 -cp "$NEW" Client "$@" || code=$?
((code == 0 || code == 3)) || exit $code
if (($#)); then exit $code; fi

tool() { timeout 40 "${java[@]}" -cp "$TOOLS" "$@" 2>&1; }
# expect NAME PATTERN COMMAND...: what the command prints has a line that matches.
expect() {
    local name=$1 pattern=$2 printed
    shift 2
    printed=$("$@")
    if grep -qE "$pattern" <<<"$printed"; then
        echo "ok $name"
    else
        code=3
        echo "FAIL $name: no line matches $pattern"
        echo "$printed" >&2
    fi
}
at=(--bootstrap-server "$BOOTSTRAP")
topics=org.apache.kafka.tools.TopicCommand
configs=kafka.admin.ConfigCommand
groups=org.apache.kafka.tools.consumer.group.ConsumerGroupCommand
transactions=org.apache.kafka.tools.TransactionsCommand

produce_lines() {
    printf 'a:1\tk1\tv1\nb:2,b:3\tk2\tv2\n' | tool org.apache.kafka.tools.ConsoleProducer "${at[@]}" --topic lines \
        --property parse.headers=true --property parse.key=true --compression-codec zstd
    tool org.apache.kafka.tools.GetOffsetShell "${at[@]}" --topic lines
}
consume_lines() {
    tool org.apache.kafka.tools.consumer.ConsoleConsumer "${at[@]}" --topic lines --from-beginning --group readers \
        --property print.headers=true --property print.key=true --max-messages 2 --timeout-ms 15000
}
widen() {
    tool $topics "${at[@]}" --create --topic wider --partitions 1
    tool $topics "${at[@]}" --alter --topic wider --partitions 3
    tool $topics "${at[@]}" --describe --topic wider
}
delete_first() {
    tool org.apache.kafka.tools.DeleteRecordsCommand "${at[@]}" --offset-json-file \
        <(echo '{"partitions": [{"topic": "lines", "partition": 0, "offset": 1}], "version": 1}')
}

expect kafka-broker-api-versions 'Produce\(0\)' tool org.apache.kafka.tools.BrokerApiVersionsCommand "${at[@]}"
expect kafka-cluster 'Cluster ID: ' tool org.apache.kafka.tools.ClusterTool cluster-id "${at[@]}"
expect kafka-topics-create '^Created topic lines' tool $topics "${at[@]}" --create --topic lines --partitions 1
expect kafka-topics-describe 'Topic: lines.*PartitionCount: 1' tool $topics "${at[@]}" --describe --topic lines
expect kafka-topics-alter 'PartitionCount: 3' widen
expect kafka-console-producer '^lines:0:2' produce_lines
expect kafka-console-consumer '^b:2,b:3	k2	v2' consume_lines
expect kafka-consumer-groups-describe 'readers +lines +0 +2 +2 +0' tool $groups "${at[@]}" --describe --group readers
expect kafka-consumer-groups-reset 'readers +lines +0 +1' \
    tool $groups "${at[@]}" --reset-offsets --group readers --topic lines --to-offset 1 --execute
expect kafka-consumer-groups-delete 'readers.*successful' tool $groups "${at[@]}" --delete --group readers
expect kafka-configs-alter 'Completed updating config' \
    tool $configs "${at[@]}" --alter --topic lines --add-config retention.ms=123456
expect kafka-configs-describe 'retention.ms=123456' tool $configs "${at[@]}" --describe --topic lines
expect kafka-transactions-list 'TransactionalId' tool $transactions "${at[@]}" list
expect kafka-delete-records 'partition: lines-0.*low_watermark: 1' delete_first
expect kafka-log-dirs '"error":null' tool org.apache.kafka.tools.LogDirsCommand "${at[@]}" --describe
expect kafka-producer-perf-test '^20000 records sent' tool org.apache.kafka.tools.ProducerPerformance --topic perf \
    --num-records 20000 --record-size 100 --throughput -1 --producer-props bootstrap.servers="$BOOTSTRAP" acks=all
expect kafka-consumer-perf-test ', 20000, ' \
    tool org.apache.kafka.tools.ConsumerPerformance "${at[@]}" --topic perf --messages 20000 --timeout 15000
exit $code
