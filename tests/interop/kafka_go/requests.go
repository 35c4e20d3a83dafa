package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"tagwire/interop/cases"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// requests are the cases of kafka-go's Client: a request each, and their answers as they came.
var requests = []cases.Case{
	{Name: "request-metadata", Run: withTopic(3, requestMetadata)},
	{Name: "request-topics", Run: requestTopics},
	{Name: "request-topic-settings", Run: requestTopicSettings},
	{Name: "request-partitions", Run: withTopic(1, requestPartitions)},
	{Name: "request-configs", Run: withTopic(1, requestConfigs)},
	{Name: "request-produce-and-fetch", Run: withTopic(1, requestProduceAndFetch)},
	{Name: "request-fetch-refused", Run: withTopic(1, requestFetchRefused)},
	{Name: "request-offsets", Run: withTopic(1, requestOffsets)},
	{Name: "request-group-offsets", Run: withTopic(2, requestGroupOffsets)},
	{Name: "request-group-membership", Run: withTopic(2, requestGroupMembership)},
	{Name: "request-transaction", Run: withTopic(1, requestTransaction)},
	{Name: "request-transaction-offsets", Run: withTopic(1, requestTransactionOffsets)},
	{Name: "request-reassignments", Run: withTopic(1, requestReassignments)},
	{Name: "request-elect-leaders", Run: withTopic(1, requestElectLeaders)},
	{Name: "request-acls", Run: requestAcls},
	{Name: "request-scram-users", Run: requestScramUsers},
	{Name: "request-quotas", Run: requestQuotas},
}

// ask gives the answer, or fails the case.
func ask[Q, R any](ctx context.Context, send func(context.Context, *Q) (*R, error), request *Q) *R {
	return cases.Must(send(ctx, request))
}

func requestMetadata(ctx context.Context, topic string) error {
	versions := ask(ctx, client().ApiVersions, &kafka.ApiVersionsRequest{})
	if err := versions.Error; err != nil {
		return err
	}
	if err := cases.Check("APIs", len(versions.ApiKeys) > 30, true); err != nil {
		return err
	}
	found := ask(ctx, client().Metadata, &kafka.MetadataRequest{Topics: []string{topic, "not-there"}})
	at := fmt.Sprintf("%s:%d", found.Brokers[0].Host, found.Brokers[0].Port)
	return errors.Join(cases.Check("broker", at, cases.Bootstrap), cases.Check("controller", found.Controller.ID, found.Brokers[0].ID),
		cases.Check("partitions", len(found.Topics[0].Partitions), 3), cases.Check("leader", found.Topics[0].Partitions[2].Leader.ID, found.Brokers[0].ID),
		cases.Check("a topic that is not there", errors.Is(found.Topics[1].Error, kafka.UnknownTopicOrPartition), true))
}

func requestTopics(ctx context.Context) error {
	topic := cases.Fresh("t-")
	config := kafka.TopicConfig{Topic: topic, NumPartitions: 2, ReplicationFactor: 1}
	create := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}}
	for _, wanted := range []error{nil, kafka.TopicAlreadyExists} {
		made := ask(ctx, client().CreateTopics, create)
		if err := errors.Join(cases.Check("created", errors.Is(made.Errors[topic], wanted), true)); err != nil {
			return err
		}
	}
	deleted := ask(ctx, client().DeleteTopics, &kafka.DeleteTopicsRequest{Topics: []string{topic, "not-there"}})
	return errors.Join(deleted.Errors[topic], cases.Check("not there", errors.Is(deleted.Errors["not-there"], kafka.UnknownTopicOrPartition), true))
}

// requestTopicSettings creates a topic with settings that a broker of one node need not act on, too.
func requestTopicSettings(ctx context.Context) error {
	topic, settings := cases.Fresh("t-"), []kafka.ConfigEntry{
		{ConfigName: "cleanup.policy", ConfigValue: "compact"}, {ConfigName: "min.insync.replicas", ConfigValue: "1"},
		{ConfigName: "flush.messages", ConfigValue: "1"}, {ConfigName: "preallocate", ConfigValue: "false"},
	}
	made := ask(ctx, client().CreateTopics, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: settings},
	}})
	if err := made.Errors[topic]; err != nil {
		return err
	}
	for _, setting := range settings {
		value, err := topicSetting(ctx, topic, setting.ConfigName)
		if err = errors.Join(err, cases.Check(setting.ConfigName, value, setting.ConfigValue)); err != nil {
			return err
		}
	}
	return nil
}

// topicSetting is what one setting of a topic is.
func topicSetting(ctx context.Context, topic, name string) (string, error) {
	found := ask(ctx, client().DescribeConfigs, &kafka.DescribeConfigsRequest{IncludeSynonyms: true, IncludeDocumentation: true,
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name}}}})
	if err := found.Resources[0].Error; err != nil {
		return "", err
	}
	if err := cases.Check("entries", len(found.Resources[0].ConfigEntries), 1); err != nil {
		return "", err
	}
	return found.Resources[0].ConfigEntries[0].ConfigValue, nil
}

func requestPartitions(ctx context.Context, topic string) error {
	for count, wanted := range map[int32]bool{3: true, 1: false} {
		asked := kafka.TopicPartitionsConfig{Name: topic, Count: count}
		changed := ask(ctx, client().CreatePartitions, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{asked}, ValidateOnly: true})
		if err := errors.Join(cases.Check(fmt.Sprint(count, " partitions"), changed.Errors[topic] == nil, wanted)); err != nil {
			return err
		}
	}
	changed := ask(ctx, client().CreatePartitions, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 3}}})
	return changed.Errors[topic]
}

func requestConfigs(ctx context.Context, topic string) error {
	whole := ask(ctx, client().AlterConfigs, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.AlterConfigRequestConfig{{Name: "retention.ms", Value: "123456"}},
	}}})
	for _, err := range whole.Errors {
		if err != nil {
			return err
		}
	}
	changed := ask(ctx, client().IncrementalAlterConfigs, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: []kafka.IncrementalAlterConfigsRequestConfig{
			{Name: "cleanup.policy", Value: "compact", ConfigOperation: kafka.ConfigOperationAppend},
			{Name: "segment.bytes", Value: "1048576", ConfigOperation: kafka.ConfigOperationSet},
		},
	}}})
	if err := changed.Resources[0].Error; err != nil {
		return err
	}
	for name, wanted := range map[string]string{"retention.ms": "123456", "cleanup.policy": "delete,compact", "segment.bytes": "1048576"} {
		value, err := topicSetting(ctx, topic, name)
		if err = errors.Join(err, cases.Check(name, value, wanted)); err != nil {
			return err
		}
	}
	return nil
}

func records(count int, start time.Time) kafka.RecordReader {
	made := make([]kafka.Record, count)
	for i := range made {
		made[i] = kafka.Record{Time: start.Add(time.Duration(i) * time.Second), Key: kafka.NewBytes(fmt.Appendf(nil, "k%d", i)),
			Value: kafka.NewBytes(fmt.Appendf(nil, "v%d", i)), Headers: []kafka.Header{{Key: "h", Value: []byte("1")}}}
	}
	return kafka.NewRecordReader(made...)
}

var start = time.UnixMilli(1_700_000_000_000)

// values are those of records that were fetched, each with its offset.
func values(reader kafka.RecordReader) ([]string, error) {
	var found []string
	for {
		record, err := reader.ReadRecord()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found = append(found, fmt.Sprintf("%d=%s", record.Offset, cases.Must(kafka.ReadAll(record.Value))))
	}
}

func requestProduceAndFetch(ctx context.Context, topic string) error {
	for number, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		stored := ask(ctx, client().Produce, &kafka.ProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll, Compression: codec, Records: records(3, start),
		})
		if err := errors.Join(stored.Error, cases.Check("base offset", stored.BaseOffset, 3*number)); err != nil {
			return err
		}
	}
	for offset, wanted := range map[int64]string{0: "0=v0", 7: "7=v1", kafka.FirstOffset: "0=v0"} {
		fetched := ask(ctx, client().Fetch, &kafka.FetchRequest{Topic: topic, Offset: offset, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Second})
		if err := errors.Join(fetched.Error, cases.Check("high watermark", fetched.HighWatermark, 15)); err != nil {
			return err
		}
		found, err := values(fetched.Records)
		if err != nil {
			return err
		}
		for len(found) > 0 && offset > 0 && found[0] != wanted { // a batch comes whole
			found = found[1:]
		}
		if err := cases.Check(fmt.Sprint("records from ", offset), found[0], wanted); err != nil {
			return err
		}
	}
	begun := time.Now()
	empty := ask(ctx, client().Fetch, &kafka.FetchRequest{Topic: topic, Offset: kafka.LastOffset, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 300 * time.Millisecond})
	if err := errors.Join(empty.Error, cases.Check("waited", time.Since(begun) > 250*time.Millisecond, true)); err != nil {
		return err
	}
	found, err := values(empty.Records)
	return errors.Join(err, cases.Check("records", len(found), 0))
}

func requestFetchRefused(ctx context.Context, topic string) error {
	beyond := ask(ctx, client().Fetch, &kafka.FetchRequest{Topic: topic, Offset: 5, MinBytes: 1, MaxBytes: 1000, MaxWait: time.Second})
	return cases.Check("beyond the end", errors.Is(beyond.Error, kafka.OffsetOutOfRange), true)
}

func requestOffsets(ctx context.Context, topic string) error {
	stored := ask(ctx, client().Produce, &kafka.ProduceRequest{Topic: topic, RequiredAcks: kafka.RequireAll, Records: records(10, start)})
	if err := stored.Error; err != nil {
		return err
	}
	found := ask(ctx, client().ListOffsets, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {
		kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.TimeOffsetOf(0, start.Add(3500*time.Millisecond)),
	}}})
	partition := found.Topics[topic][0]
	if err := errors.Join(partition.Error, cases.Check("ends", fmt.Sprint(partition.FirstOffset, " ", partition.LastOffset), "0 10")); err != nil {
		return err
	}
	_, there := partition.Offsets[4]
	return cases.Check("by time", there, true)
}

func requestGroupOffsets(ctx context.Context, topic string) error {
	group, cl := cases.Fresh("g-"), client()
	coordinator := ask(ctx, cl.FindCoordinator, &kafka.FindCoordinatorRequest{Key: group, KeyType: kafka.CoordinatorKeyTypeConsumer})
	if err := errors.Join(coordinator.Error, cases.Check("coordinator", fmt.Sprintf("%s:%d", coordinator.Coordinator.Host, coordinator.Coordinator.Port), cases.Bootstrap)); err != nil {
		return err
	}
	done := ask(ctx, cl.OffsetCommit, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{
		topic: {{Partition: 0, Offset: 5, Metadata: "a note"}, {Partition: 1, Offset: 6}},
	}})
	for _, partition := range done.Topics[topic] {
		if partition.Error != nil {
			return partition.Error
		}
	}
	fetched := ask(ctx, cl.OffsetFetch, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1}}})
	for _, partition := range fetched.Topics[topic] {
		wanted := []string{"5 a note", "6 "}[partition.Partition]
		if err := cases.Check("committed", fmt.Sprint(partition.CommittedOffset, " ", partition.Metadata), wanted); err != nil {
			return err
		}
	}
	listed := ask(ctx, cl.ListGroups, &kafka.ListGroupsRequest{})
	if err := listed.Error; err != nil {
		return err
	}
	there := false
	for _, each := range listed.Groups {
		there = there || each.GroupID == group
	}
	if err := cases.Check("listed", there, true); err != nil {
		return err
	}
	dropped := ask(ctx, cl.OffsetDelete, &kafka.OffsetDeleteRequest{GroupID: group, Topics: map[string][]int{topic: {1}}})
	if err := errors.Join(dropped.Error, dropped.Topics[topic][0].Error); err != nil {
		return err
	}
	deleted := ask(ctx, cl.DeleteGroups, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	return deleted.Errors[group]
}

// requestGroupMembership is a member's life by hand: it joins, leads, is told its partitions, commits and leaves.
func requestGroupMembership(ctx context.Context, topic string) error {
	group, cl, member := cases.Fresh("g-"), client(), ""
	var joined *kafka.JoinGroupResponse
	for {
		joined = ask(ctx, cl.JoinGroup, &kafka.JoinGroupRequest{
			GroupID: group, MemberID: member, SessionTimeout: 10 * time.Second, RebalanceTimeout: 10 * time.Second, ProtocolType: "consumer",
			Protocols: []kafka.GroupProtocol{{Name: "range", Metadata: kafka.GroupProtocolSubscription{Topics: []string{topic}}}},
		})
		if !errors.Is(joined.Error, kafka.MemberIDRequired) {
			break
		}
		member = joined.MemberID
	}
	if err := errors.Join(joined.Error, cases.Check("leader", joined.LeaderID, joined.MemberID), cases.Check("members", len(joined.Members), 1)); err != nil {
		return err
	}
	assigned := kafka.GroupProtocolAssignment{AssignedPartitions: map[string][]int{topic: {0, 1}}}
	synced := ask(ctx, cl.SyncGroup, &kafka.SyncGroupRequest{
		GroupID: group, GenerationID: joined.GenerationID, MemberID: joined.MemberID, ProtocolType: "consumer", ProtocolName: "range",
		Assignments: []kafka.SyncGroupRequestAssignment{{MemberID: joined.MemberID, Assignment: assigned}},
	})
	if err := errors.Join(synced.Error, cases.Check("assigned", synced.Assignment.AssignedPartitions, assigned.AssignedPartitions)); err != nil {
		return err
	}
	beat := ask(ctx, cl.Heartbeat, &kafka.HeartbeatRequest{GroupID: group, GenerationID: int32(joined.GenerationID), MemberID: joined.MemberID})
	if err := beat.Error; err != nil {
		return err
	}
	late := ask(ctx, cl.OffsetCommit, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: joined.GenerationID + 1, MemberID: joined.MemberID,
		Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: 1}}}})
	if err := errors.Join(cases.Check("another generation", errors.Is(late.Topics[topic][0].Error, kafka.IllegalGeneration), true)); err != nil {
		return err
	}
	left := ask(ctx, cl.LeaveGroup, &kafka.LeaveGroupRequest{GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: joined.MemberID}}})
	return left.Error
}

// asTransactional makes a batch of a producer's transaction of one that kafka-go wrote, which can write none itself.
func asTransactional(batch []byte, producer *kafka.ProducerSession, sequence int) []byte {
	const checksum, attributes, producerID, transactional = 17, 21, 43, 1 << 4
	batch[attributes+1] |= transactional
	binary.BigEndian.PutUint64(batch[producerID:], uint64(producer.ProducerID))
	binary.BigEndian.PutUint16(batch[producerID+8:], uint16(producer.ProducerEpoch))
	binary.BigEndian.PutUint32(batch[producerID+10:], uint32(sequence))
	binary.BigEndian.PutUint32(batch[checksum:], crc32.Checksum(batch[attributes:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// begun is a producer of a transaction.
func begun(ctx context.Context, id string) (*kafka.ProducerSession, error) {
	cl := client()
	coordinator := ask(ctx, cl.FindCoordinator, &kafka.FindCoordinatorRequest{Key: id, KeyType: kafka.CoordinatorKeyTypeTransaction})
	if coordinator.Error != nil {
		return nil, coordinator.Error
	}
	made := ask(ctx, cl.InitProducerID, &kafka.InitProducerIDRequest{TransactionalID: id, TransactionTimeoutMs: 30000})
	return made.Producer, made.Error
}

func end(ctx context.Context, id string, producer *kafka.ProducerSession, commit bool) error {
	ended := ask(ctx, client().EndTxn, &kafka.EndTxnRequest{
		TransactionalID: id, ProducerID: producer.ProducerID, ProducerEpoch: producer.ProducerEpoch, Committed: commit,
	})
	return ended.Error
}

func requestTransaction(ctx context.Context, topic string) error {
	id, cl, sequence := cases.Fresh("x-"), client(), 0
	producer, err := begun(ctx, id)
	if err != nil {
		return err
	}
	for number, commit := range []bool{true, false, true} {
		added := ask(ctx, cl.AddPartitionsToTxn, &kafka.AddPartitionsToTxnRequest{
			TransactionalID: id, ProducerID: producer.ProducerID, ProducerEpoch: producer.ProducerEpoch,
			Topics: map[string][]kafka.AddPartitionToTxn{topic: {{Partition: 0}}},
		})
		if err := added.Topics[topic][0].Error; err != nil {
			return err
		}
		var written bytes.Buffer
		set := protocol.RecordSet{Version: 2, Records: records(5, start)}
		if _, err := set.WriteTo(&written); err != nil {
			return err
		}
		batch := asTransactional(written.Bytes()[4:], producer, sequence) // after the length of what follows
		sized := append(binary.BigEndian.AppendUint32(nil, uint32(len(batch))), batch...)
		stored := ask(ctx, cl.RawProduce, &kafka.RawProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll, TransactionalID: id, RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(sized)},
		})
		if err := stored.Error; err != nil {
			return err
		}
		sequence += 5
		fetched := ask(ctx, cl.Fetch, &kafka.FetchRequest{
			Topic: topic, Offset: int64(6 * number), MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond, IsolationLevel: kafka.ReadCommitted,
		})
		if err := fetched.Error; err != nil {
			return err
		}
		ends := fmt.Sprint(fetched.LastStableOffset, " ", fetched.HighWatermark)
		if err := cases.Check("ends while it is open", ends, fmt.Sprint(6*number, " ", 6*number+5)); err != nil {
			return err
		}
		found, err := values(fetched.Records)
		if err = errors.Join(err, cases.Check("seen while it is open", len(found), 0)); err != nil {
			return err
		}
		if err := end(ctx, id, producer, commit); err != nil {
			return err
		}
	}
	fetched := ask(ctx, cl.Fetch, &kafka.FetchRequest{
		Topic: topic, Offset: 12, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Second, IsolationLevel: kafka.ReadCommitted,
	})
	if err := errors.Join(fetched.Error, cases.Check("last stable offset", fetched.LastStableOffset, 18)); err != nil {
		return err
	}
	found, err := values(fetched.Records)
	return errors.Join(err, cases.Check("first committed", found[0], "12=v0"))
}

func requestTransactionOffsets(ctx context.Context, topic string) error {
	id, group, cl := cases.Fresh("x-"), cases.Fresh("g-"), client()
	producer, err := begun(ctx, id)
	if err != nil {
		return err
	}
	for number, commit := range []bool{true, false} {
		added := ask(ctx, cl.AddOffsetsToTxn, &kafka.AddOffsetsToTxnRequest{
			TransactionalID: id, ProducerID: producer.ProducerID, ProducerEpoch: producer.ProducerEpoch, GroupID: group,
		})
		if err := added.Error; err != nil {
			return err
		}
		sent := ask(ctx, cl.TxnOffsetCommit, &kafka.TxnOffsetCommitRequest{
			TransactionalID: id, GroupID: group, ProducerID: producer.ProducerID, ProducerEpoch: producer.ProducerEpoch, GenerationID: -1,
			Topics: map[string][]kafka.TxnOffsetCommit{topic: {{Partition: 0, Offset: int64(number + 7)}}},
		})
		if err := sent.Topics[topic][0].Error; err != nil {
			return err
		}
		if err := end(ctx, id, producer, commit); err != nil {
			return err
		}
	}
	return cases.Check("committed", committed(ctx, group, topic, 1), "[7]")
}

func requestReassignments(ctx context.Context, topic string) error {
	listed := ask(ctx, client().ListPartitionReassignments, &kafka.ListPartitionReassignmentsRequest{
		Topics: map[string]kafka.ListPartitionReassignmentsRequestTopic{topic: {PartitionIndexes: []int{0}}},
	})
	if err := errors.Join(listed.Error, cases.Check("moving", len(listed.Topics), 0)); err != nil {
		return err
	}
	found := ask(ctx, client().Metadata, &kafka.MetadataRequest{Topics: []string{topic}})
	node := found.Brokers[0].ID
	for replica, wanted := range map[int]bool{node: true, node + 1000: false} {
		altered := ask(ctx, client().AlterPartitionReassignments, &kafka.AlterPartitionReassignmentsRequest{
			Topic: topic, Assignments: []kafka.AlterPartitionReassignmentsRequestAssignment{{PartitionID: 0, BrokerIDs: []int{replica}}},
		})
		if err := altered.Error; err != nil {
			return err
		}
		if err := cases.Check(fmt.Sprint("moved to ", replica), altered.PartitionResults[0].Error == nil, wanted); err != nil {
			return err
		}
	}
	return nil
}

func requestElectLeaders(ctx context.Context, topic string) error {
	elected := ask(ctx, client().ElectLeaders, &kafka.ElectLeadersRequest{Topic: topic, Partitions: []int{0}, Timeout: time.Second})
	if err := elected.Error; err != nil {
		return err
	}
	return cases.Check("election", errors.Is(elected.PartitionResults[0].Error, kafka.ElectionNotNeeded), true)
}

// requestAcls finds that nothing is guarded by any: the broker has no authorizer, and says so as Kafka's does.
func requestAcls(ctx context.Context) error {
	described := ask(ctx, client().DescribeACLs, &kafka.DescribeACLsRequest{Filter: kafka.ACLFilter{
		ResourceTypeFilter: kafka.ResourceTypeAny, ResourcePatternTypeFilter: kafka.PatternTypeAny, Operation: kafka.ACLOperationTypeAny,
		PermissionType: kafka.ACLPermissionTypeAny,
	}})
	if err := errors.Join(cases.Check("describing", errors.Is(described.Error, kafka.SecurityDisabled), true)); err != nil {
		return err
	}
	made := ask(ctx, client().CreateACLs, &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: "t", ResourcePatternType: kafka.PatternTypeLiteral, Principal: "User:alice",
		Host: "*", Operation: kafka.ACLOperationTypeRead, PermissionType: kafka.ACLPermissionTypeAllow,
	}}})
	return errors.Join(cases.Check("creating", errors.Is(made.Errors[0], kafka.SecurityDisabled), true))
}

func requestScramUsers(ctx context.Context) error {
	user, err := cases.Given("SASL_USER")
	if err != nil {
		return err
	}
	found := ask(ctx, client().DescribeUserScramCredentials, &kafka.DescribeUserScramCredentialsRequest{
		Users: []kafka.UserScramCredentialsUser{{Name: user}, {Name: "nobody"}},
	})
	if found.Error != nil {
		return found.Error
	}
	for _, result := range found.Results {
		there := map[bool]int{true: 2, false: 0}[result.User == user]
		if err := errors.Join(cases.Check(result.User, len(result.CredentialInfos), there),
			cases.Check(result.User, errors.Is(result.Error, kafka.ResourceNotFound), there == 0)); err != nil {
			return err
		}
	}
	mechanism := kafka.ScramMechanismSha512
	added := ask(ctx, client().AlterUserScramCredentials, &kafka.AlterUserScramCredentialsRequest{
		Upsertions: []kafka.UserScramCredentialsUpsertion{{
			Name: "new", Mechanism: mechanism, Iterations: 8192, Salt: []byte("salt of the user"), SaltedPassword: make([]byte, 64),
		}},
	})
	removed := ask(ctx, client().AlterUserScramCredentials, &kafka.AlterUserScramCredentialsRequest{
		Deletions: []kafka.UserScramCredentialsDeletion{{Name: "new", Mechanism: mechanism}},
	})
	return errors.Join(added.Results[0].Error, removed.Results[0].Error)
}

// requestQuotas sets one, finds it, and removes it.
func requestQuotas(ctx context.Context) error {
	for _, remove := range []bool{false, true} {
		changed := ask(ctx, client().AlterClientQuotas, &kafka.AlterClientQuotasRequest{Entries: []kafka.AlterClientQuotaEntry{{
			Entities: []kafka.AlterClientQuotaEntity{{EntityType: "user", EntityName: "alice"}},
			Ops:      []kafka.AlterClientQuotaOps{{Key: "producer_byte_rate", Value: 1000, Remove: remove}},
		}}})
		found := ask(ctx, client().DescribeClientQuotas, &kafka.DescribeClientQuotasRequest{})
		there := map[bool]int{false: 1, true: 0}[remove]
		if err := errors.Join(changed.Entries[0].Error, found.Error, cases.Check("quotas", len(found.Entries), there)); err != nil {
			return err
		}
	}
	return nil
}
