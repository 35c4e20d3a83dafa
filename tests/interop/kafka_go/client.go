// What kafka-go asks of a broker: its Writer, its Reader, groups, its Conn, and security. Its Client is in requests.go.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"tagwire/interop/cases"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

var broker = kafka.TCP(cases.Bootstrap)

func client() *kafka.Client { return &kafka.Client{Addr: broker, Timeout: 20 * time.Second} }

// withTopic runs work with a new topic.
func withTopic(partitions int, work func(context.Context, string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		topic := cases.Fresh("t-")
		made, err := client().CreateTopics(ctx, &kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
		})
		if err != nil {
			return err
		}
		if err := made.Errors[topic]; err != nil {
			return err
		}
		return work(ctx, topic)
	}
}

func messages(partition, count int, tag string) []kafka.Message {
	made := make([]kafka.Message, count)
	for i := range made {
		made[i] = kafka.Message{Partition: partition, Value: fmt.Appendf(nil, "%s-%d-%d", tag, partition, i)}
		if i%2 == 1 {
			made[i].Key = fmt.Appendf(nil, "k%d", i)
			made[i].Headers = []kafka.Header{{Key: "origin", Value: []byte("EWR")}, {Key: "origin", Value: []byte{}}}
		}
	}
	return made
}

// byHand sends a message to the partition that it names.
func byHand(m kafka.Message, _ ...int) int { return m.Partition }

func write(ctx context.Context, topic string, sent []kafka.Message, changes ...func(*kafka.Writer)) error {
	writer := &kafka.Writer{
		Addr: broker, Topic: topic, Balancer: kafka.BalancerFunc(byHand), BatchTimeout: 5 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
	}
	for _, change := range changes {
		change(writer)
	}
	return errors.Join(writer.WriteMessages(ctx, sent...), writer.Close())
}

func reader(topic string, changes ...func(*kafka.ReaderConfig)) *kafka.Reader {
	c := kafka.ReaderConfig{Brokers: []string{cases.Bootstrap}, Topic: topic, MaxWait: 100 * time.Millisecond, StartOffset: kafka.FirstOffset}
	for _, change := range changes {
		change(&c)
	}
	return kafka.NewReader(c)
}

func read(ctx context.Context, r *kafka.Reader, count int) ([]kafka.Message, error) {
	var found []kafka.Message
	for len(found) < count {
		message, err := r.ReadMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("after %d of %d messages: %w", len(found), count, err)
		}
		found = append(found, message)
	}
	return found, nil
}

func readAll(ctx context.Context, topic string, count int, changes ...func(*kafka.ReaderConfig)) ([]kafka.Message, error) {
	r := reader(topic, changes...)
	defer r.Close()
	return read(ctx, r, count)
}

func same(found, sent []kafka.Message) error {
	if err := cases.Check("messages", len(found), len(sent)); err != nil {
		return err
	}
	for i, message := range found {
		a := fmt.Sprintf("%s %s %s", message.Key, message.Value, message.Headers)
		if err := cases.Check("message", a, fmt.Sprintf("%s %s %s", sent[i].Key, sent[i].Value, sent[i].Headers)); err != nil {
			return err
		}
	}
	return nil
}

// written reads what was written with a changed writer.
func written(changes ...func(*kafka.Writer)) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		sent := messages(0, 500, "w")
		if err := write(ctx, topic, sent, changes...); err != nil {
			return err
		}
		found, err := readAll(ctx, topic, len(sent))
		return errors.Join(err, same(found, sent))
	})
}

func writeAsync(ctx context.Context, topic string) error {
	sent, done := messages(0, 500, "async"), make(chan int, 500)
	completed := func(messages []kafka.Message, err error) {
		if err == nil {
			done <- len(messages)
		}
	}
	if err := write(ctx, topic, sent, func(w *kafka.Writer) { w.Async, w.Completion = true, completed }); err != nil {
		return err
	}
	close(done)
	total := 0
	for count := range done {
		total += count
	}
	if err := cases.Check("completed", total, len(sent)); err != nil {
		return err
	}
	found, err := readAll(ctx, topic, len(sent))
	return errors.Join(err, same(found, sent))
}

func writeToNewTopic(ctx context.Context) error {
	topic, sent := cases.Fresh("made-"), messages(0, 5, "n")
	if err := write(ctx, topic, sent, func(w *kafka.Writer) { w.AllowAutoTopicCreation = true }); err != nil {
		return err
	}
	found, err := readAll(ctx, topic, len(sent))
	return errors.Join(err, same(found, sent))
}

func readFromOffsets(ctx context.Context, topic string) error {
	start, sent := time.UnixMilli(1_700_000_000_000), messages(0, 20, "at")
	for i := range sent {
		sent[i].Time = start.Add(time.Duration(i) * time.Second)
	}
	if err := write(ctx, topic, sent); err != nil {
		return err
	}
	r := reader(topic)
	defer r.Close()
	if err := r.SetOffset(15); err != nil {
		return err
	}
	found, err := read(ctx, r, 5)
	if err = errors.Join(err, same(found, sent[15:])); err != nil {
		return err
	}
	if err := r.SetOffsetAt(ctx, start.Add(7500*time.Millisecond)); err != nil {
		return err
	}
	found, err = read(ctx, r, 12)
	if err = errors.Join(err, same(found, sent[8:])); err != nil {
		return err
	}
	if err := r.SetOffset(0); err != nil {
		return err
	}
	lag, err := r.ReadLag(ctx)
	if err = errors.Join(err, cases.Check("lag", lag, 20)); err != nil {
		return err
	}
	if err := r.SetOffset(kafka.LastOffset); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = r.ReadMessage(short)
	return cases.Check("at the end", errors.Is(err, context.DeadlineExceeded), true)
}

// rebalance lets a second member join and leave while nothing is lost or read twice.
func rebalance(balancer kafka.GroupBalancer) func(context.Context) error {
	return withTopic(4, func(ctx context.Context, topic string) error {
		group, lock, times := cases.Fresh("g-"), sync.Mutex{}, map[string]int{}
		member := func() (*kafka.Reader, chan error) {
			r := kafka.NewReader(kafka.ReaderConfig{
				Brokers: []string{cases.Bootstrap}, GroupID: group, GroupTopics: []string{topic}, MaxWait: 100 * time.Millisecond,
				GroupBalancers: []kafka.GroupBalancer{balancer}, HeartbeatInterval: 200 * time.Millisecond,
				JoinGroupBackoff: 200 * time.Millisecond, StartOffset: kafka.FirstOffset,
			})
			ended := make(chan error, 1)
			go func() {
				for {
					message, err := r.FetchMessage(ctx)
					if err == nil {
						lock.Lock()
						times[string(message.Value)]++
						lock.Unlock()
						err = r.CommitMessages(ctx, message)
					}
					if err != nil {
						ended <- err
						return
					}
				}
			}()
			return r, ended
		}
		count := func() int {
			lock.Lock()
			defer lock.Unlock()
			return len(times)
		}
		first, _ := member()
		defer first.Close()
		if err := cases.Until(ctx, "four partitions", func() bool { return owned(ctx, group) == "[4]" }); err != nil {
			return err
		}
		second, ended := member()
		if err := cases.Until(ctx, "two partitions each", func() bool { return owned(ctx, group) == "[2 2]" }); err != nil {
			return err
		}
		for partition := range 4 {
			if err := write(ctx, topic, messages(partition, 50, "r")); err != nil {
				return err
			}
		}
		if err := cases.Until(ctx, "every message", func() bool { return count() == 200 }); err != nil {
			return err
		}
		if err := cases.Until(ctx, "every commit", func() bool { return committed(ctx, group, topic, 4) == "[50 50 50 50]" }); err != nil {
			return err
		}
		if err := second.Close(); err != nil {
			return err
		}
		<-ended
		if err := cases.Until(ctx, "who left", func() bool { return owned(ctx, group) == "[4]" }); err != nil {
			return err
		}
		for value, number := range times {
			if number != 1 {
				return fmt.Errorf("%s was read %d times", value, number)
			}
		}
		return nil
	})
}

// owned tells how many partitions each member of a stable group has.
func owned(ctx context.Context, group string) string {
	described, err := client().DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err.Error()
	}
	var counts []int
	for _, member := range described.Groups[0].Members {
		count := 0
		for _, topic := range member.MemberAssignments.Topics {
			count += len(topic.Partitions)
		}
		counts = append(counts, count)
	}
	slices.Sort(counts)
	return fmt.Sprint(counts)
}

// committed tells the group's offset of each partition.
func committed(ctx context.Context, group, topic string, partitions int) string {
	offsets, err := client().ConsumerOffsets(ctx, kafka.TopicAndGroup{Topic: topic, GroupId: group})
	if err != nil {
		return err.Error()
	}
	found := make([]int64, partitions)
	for partition := range found {
		found[partition] = offsets[partition]
	}
	return fmt.Sprint(found)
}

// generations goes through a group by kafka-go's lower interface: a generation's assignment, commits, the next one.
func generations(ctx context.Context, topic string) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: cases.Fresh("g-"), Brokers: []string{cases.Bootstrap}, Topics: []string{topic}, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 100 * time.Millisecond, WatchPartitionChanges: true, PartitionWatchInterval: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer group.Close()
	generation, err := group.Next(ctx)
	if err != nil {
		return err
	}
	if err := cases.Check("partitions", len(generation.Assignments[topic]), 2); err != nil {
		return err
	}
	if err := generation.CommitOffsets(map[string]map[int]int64{topic: {0: 3, 1: 4}}); err != nil {
		return err
	}
	widened, err := client().CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 3}}})
	if err = errors.Join(err, widened.Errors[topic]); err != nil {
		return err
	}
	generation, err = group.Next(ctx)
	if err != nil {
		return err
	}
	offsets := map[int]int64{}
	for _, assigned := range generation.Assignments[topic] {
		offsets[assigned.ID] = assigned.Offset
	}
	return cases.Check("offsets", offsets, map[int]int64{0: 3, 1: 4, 2: kafka.FirstOffset})
}

// connection goes through the calls of a connection to a partition's leader.
func connection(ctx context.Context, topic string) error {
	c, err := kafka.DialLeader(ctx, "tcp", cases.Bootstrap, topic, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	plain, packed := messages(0, 10, "plain"), messages(0, 10, "packed")
	if _, err := c.WriteMessages(plain...); err != nil {
		return err
	}
	if _, _, at, _, err := c.WriteCompressedMessagesAt(kafka.Zstd.Codec(), packed...); err != nil || at != 10 {
		return fmt.Errorf("at %d: %w", at, err)
	}
	if first, last, err := c.ReadOffsets(); err != nil || first != 0 || last != 20 {
		return fmt.Errorf("offsets are %d and %d: %w", first, last, err)
	}
	if _, err := c.Seek(5, kafka.SeekStart); err != nil {
		return err
	}
	batch := c.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: 1 << 20, IsolationLevel: kafka.ReadCommitted})
	var found []kafka.Message
	for len(found) < 5 {
		message, err := batch.ReadMessage()
		if err != nil {
			return err
		}
		found = append(found, message)
	}
	if err := errors.Join(batch.Close(), same(found, plain[5:])); err != nil {
		return err
	}
	versions, err := c.ApiVersions()
	if err = errors.Join(err, cases.Check("versions", len(versions) > 30, true)); err != nil {
		return err
	}
	partitions, err := c.ReadPartitions(topic)
	if err = errors.Join(err, cases.Check("partitions", len(partitions), 1)); err != nil {
		return err
	}
	brokers, err := c.Brokers()
	if err = errors.Join(err, cases.Check("brokers", len(brokers), 1)); err != nil {
		return err
	}
	controller, err := c.Controller()
	if err = errors.Join(err, cases.Check("controller", fmt.Sprintf("%s:%d", controller.Host, controller.Port), cases.Bootstrap)); err != nil {
		return err
	}
	made := cases.Fresh("t-")
	config := kafka.TopicConfig{Topic: made, NumPartitions: 2, ReplicationFactor: 1}
	return errors.Join(c.CreateTopics(config), c.DeleteTopics(made))
}

// secured produces and reads one message at a guarded listener.
func secured(where string, encrypted, certified bool, login func() (sasl.Mechanism, error)) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		address, err := cases.Given(where)
		if err != nil {
			return err
		}
		var trust *tls.Config
		if encrypted {
			if trust, err = cases.TLS(certified); err != nil {
				return err
			}
			trust.ServerName, _, _ = net.SplitHostPort(address)
		}
		var mechanism sasl.Mechanism
		if login != nil {
			if mechanism, err = login(); err != nil {
				return err
			}
		}
		transport := &kafka.Transport{TLS: trust, SASL: mechanism}
		defer transport.CloseIdleConnections()
		sent := messages(0, 1, "s")
		if err := write(ctx, topic, sent, func(w *kafka.Writer) { w.Addr, w.Transport = kafka.TCP(address), transport }); err != nil {
			return err
		}
		dialer := &kafka.Dialer{TLS: trust, SASLMechanism: mechanism, Timeout: 10 * time.Second}
		found, err := readAll(ctx, topic, 1, func(c *kafka.ReaderConfig) { c.Brokers, c.Dialer = []string{address}, dialer })
		return errors.Join(err, same(found, sent))
	})
}

func wrongPassword(ctx context.Context) error {
	address, err := cases.Given("SASL_BOOTSTRAP")
	if err != nil {
		return err
	}
	wrong := &kafka.Transport{SASL: plain.Mechanism{Username: os.Getenv("SASL_USER"), Password: "not it"}}
	_, err = (&kafka.Client{Addr: kafka.TCP(address), Transport: wrong}).ApiVersions(ctx, &kafka.ApiVersionsRequest{})
	return cases.Check("refusal", errors.Is(err, kafka.SASLAuthenticationFailed), true)
}

func main() {
	user, password := os.Getenv("SASL_USER"), os.Getenv("SASL_PASSWORD")
	inPlain := func() (sasl.Mechanism, error) { return plain.Mechanism{Username: user, Password: password}, nil }
	hashed := func(algorithm scram.Algorithm) func() (sasl.Mechanism, error) {
		return func() (sasl.Mechanism, error) { return scram.Mechanism(algorithm, user, password) }
	}
	compressed := func(codec kafka.Compression) func(*kafka.Writer) {
		return func(w *kafka.Writer) { w.Compression = codec }
	}
	acks := func(wanted kafka.RequiredAcks) func(*kafka.Writer) {
		return func(w *kafka.Writer) { w.RequiredAcks = wanted }
	}
	all := []cases.Case{
		{Name: "codec-none", Run: written()},
		{Name: "codec-gzip", Run: written(compressed(kafka.Gzip))},
		{Name: "codec-snappy", Run: written(compressed(kafka.Snappy))},
		{Name: "codec-lz4", Run: written(compressed(kafka.Lz4))},
		{Name: "codec-zstd", Run: written(compressed(kafka.Zstd))},
		{Name: "write-async", Run: withTopic(1, writeAsync)},
		{Name: "write-acks-0", Run: written(acks(kafka.RequireNone))},
		{Name: "write-acks-1", Run: written(acks(kafka.RequireOne))},
		{Name: "write-to-a-new-topic", Run: writeToNewTopic},
		{Name: "read-from-offsets", Run: withTopic(1, readFromOffsets)},
		{Name: "group-rebalances-range", Run: rebalance(kafka.RangeGroupBalancer{})},
		{Name: "group-rebalances-roundrobin", Run: rebalance(kafka.RoundRobinGroupBalancer{})},
		{Name: "group-generations", Run: withTopic(2, generations)},
		{Name: "connection", Run: withTopic(1, connection)},
	}
	all = append(all, requests...)
	all = append(all, []cases.Case{
		{Name: "tls", Run: secured("TLS_BOOTSTRAP", true, false, nil)},
		{Name: "mutual-tls", Run: secured("MUTUAL_TLS_BOOTSTRAP", true, true, nil)},
		{Name: "sasl-PLAIN", Run: secured("SASL_BOOTSTRAP", false, false, inPlain)},
		{Name: "sasl-SCRAM-SHA-256", Run: secured("SASL_BOOTSTRAP", false, false, hashed(scram.SHA256))},
		{Name: "sasl-SCRAM-SHA-512", Run: secured("SASL_BOOTSTRAP", false, false, hashed(scram.SHA512))},
		{Name: "sasl-over-tls", Run: secured("SASL_TLS_BOOTSTRAP", true, false, hashed(scram.SHA512))},
		{Name: "sasl-wrong-password", Run: wrongPassword},
	}...)
	os.Exit(cases.Run(all, os.Args[1:]))
}
