// A walk of segmentio's kafka-go: `kafka_go BOOTSTRAP TOPIC CLIENT_ID`.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

const records = 20

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, topic, id := os.Args[1], os.Args[2], os.Args[3]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, BatchTimeout: 10 * time.Millisecond, MaxAttempts: 2,
		RequiredAcks: kafka.RequireAll, Compression: kafka.Gzip, Transport: &kafka.Transport{ClientID: id},
	}
	var messages []kafka.Message
	for number := 0; number < records; number++ {
		messages = append(messages, kafka.Message{Value: []byte(fmt.Sprint(number))})
	}
	check(writer.WriteMessages(ctx, messages...))
	check(writer.Close())
	fmt.Println("ok produce")

	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: "g-" + topic, Topic: topic, StartOffset: kafka.FirstOffset,
		MaxWait: 200 * time.Millisecond, Dialer: &kafka.Dialer{ClientID: id, Timeout: 5 * time.Second},
	})
	for number := 0; number < records; number++ {
		message, err := reader.FetchMessage(ctx)
		check(err)
		if string(message.Value) != fmt.Sprint(number) {
			check(fmt.Errorf("record %d is %s", number, message.Value))
		}
		check(reader.CommitMessages(ctx, message))
	}
	check(reader.Close())
	fmt.Println("ok consume")

	connection, err := (&kafka.Dialer{ClientID: id, Timeout: 5 * time.Second}).Dial("tcp", bootstrap)
	check(err)
	check(connection.CreateTopics(kafka.TopicConfig{Topic: topic + "-made", NumPartitions: 1, ReplicationFactor: 1}))
	check(connection.Close())
	fmt.Println("ok admin")
}
