// A walk of sarama: `sarama BOOTSTRAP TOPIC CLIENT_ID [VERSION [RETENTION]]`; without a version it keeps to its default.
// With a retention of offsets it commits in a newer version.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const records = 20

type reader struct {
	found chan string
}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		r.found <- string(message.Value)
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, topic := []string{os.Args[1]}, os.Args[2]
	config := sarama.NewConfig()
	config.ClientID = os.Args[3]
	if len(os.Args) > 4 {
		version, err := sarama.ParseKafkaVersion(os.Args[4])
		check(err)
		config.Version = version
	}
	if len(os.Args) > 5 {
		retention, err := time.ParseDuration(os.Args[5])
		check(err)
		config.Consumer.Offsets.Retention = retention
	}
	config.Net.ReadTimeout = 8 * time.Second
	config.Metadata.Retry.Max = 1
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Compression = sarama.CompressionGZIP
	config.Consumer.Offsets.Initial = sarama.OffsetOldest

	producer, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	for number := 0; number < records; number++ {
		value := sarama.StringEncoder(fmt.Sprint(number))
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: value})
		check(err)
	}
	check(producer.Close())
	fmt.Println("ok produce")

	group, err := sarama.NewConsumerGroup(bootstrap, "g-"+topic, config)
	check(err)
	r := reader{make(chan string, records)}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- group.Consume(ctx, []string{topic}, r) }()
	for number := 0; number < records; number++ {
		select {
		case value := <-r.found:
			if value != fmt.Sprint(number) {
				check(fmt.Errorf("record %d is %s", number, value))
			}
		case err := <-failed:
			check(fmt.Errorf("consuming ended: %w", err))
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
	check(group.Close())
	fmt.Println("ok consume")

	admin, err := sarama.NewClusterAdmin(bootstrap, config)
	check(err)
	check(admin.CreateTopic(topic+"-made", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	check(admin.Close())
	fmt.Println("ok admin")
}
