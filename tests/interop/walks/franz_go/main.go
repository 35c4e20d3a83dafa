// A walk of franz-go: `franz_go BOOTSTRAP TOPIC CLIENT_ID`.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const records = 20

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	common := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.ClientID(os.Args[3]), kgo.RetryTimeout(8 * time.Second), kgo.RequestRetries(2),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	producer, err := kgo.NewClient(append(common, kgo.ProducerBatchCompression(kgo.GzipCompression()))...)
	check(err)
	for number := 0; number < records; number++ {
		record := &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(number))}
		check(producer.ProduceSync(ctx, record).FirstErr())
	}
	fmt.Println("ok produce")

	consumer, err := kgo.NewClient(append(common, kgo.ConsumerGroup("g-"+topic), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())...)
	check(err)
	for number := 0; number < records; {
		fetched := consumer.PollFetches(ctx)
		for _, failed := range fetched.Errors() {
			check(failed.Err)
		}
		for _, record := range fetched.Records() {
			if string(record.Value) != fmt.Sprint(number) {
				check(fmt.Errorf("record %d is %s", number, record.Value))
			}
			number++
		}
	}
	check(consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
	fmt.Println("ok consume")

	create := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic+"-made", 1, 1
	create.Topics = append(create.Topics, made)
	_, err = create.RequestWith(ctx, producer)
	check(err)
	producer.Close()
	fmt.Println("ok admin")
}
