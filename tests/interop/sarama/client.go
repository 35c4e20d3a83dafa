// What sarama asks of a broker: producing, consuming, groups, transactions, security. Its admin client is in admin.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"tagwire/interop/cases"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// Older releases to speak as, from the first whose fetches brokers still answer.
var spoken = []sarama.KafkaVersion{
	sarama.V0_11_0_0, sarama.V1_1_1_0, sarama.V2_1_0_0, sarama.DefaultVersion, sarama.V3_9_0_0,
}

// config is of the newest version that sarama speaks.
func config(changes ...func(*sarama.Config)) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	for _, change := range changes {
		change(c)
	}
	return c
}

func idempotent(c *sarama.Config) {
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
}

func transactional(id string) func(*sarama.Config) {
	return func(c *sarama.Config) {
		idempotent(c)
		c.Producer.Transaction.ID = id
	}
}

func committed(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted }

func messages(topic string, partition int32, count int, tag string) []*sarama.ProducerMessage {
	made := make([]*sarama.ProducerMessage, count)
	for i := range made {
		made[i] = &sarama.ProducerMessage{
			Topic: topic, Partition: partition, Value: sarama.StringEncoder(fmt.Sprintf("%s-%d-%d", tag, partition, i)),
		}
		if i%2 == 1 {
			made[i].Key = sarama.StringEncoder(fmt.Sprintf("k%d", i))
		}
	}
	return made
}

func withHeaders(sent []*sarama.ProducerMessage) []*sarama.ProducerMessage {
	for i, message := range sent {
		if i%2 == 1 {
			message.Headers = []sarama.RecordHeader{
				{Key: []byte("origin"), Value: []byte("EWR")}, {Key: []byte("origin"), Value: []byte{}},
			}
		}
	}
	return sent
}

func produce(sent []*sarama.ProducerMessage, changes ...func(*sarama.Config)) error {
	producer, err := sarama.NewSyncProducer([]string{cases.Bootstrap}, config(changes...))
	if err != nil {
		return err
	}
	return errors.Join(producer.SendMessages(sent), producer.Close())
}

// readFrom reads `count` messages of partition 0.
func readFrom(ctx context.Context, topic string, offset int64, count int, c *sarama.Config, at string) ([]*sarama.ConsumerMessage, error) {
	consumer, err := sarama.NewConsumer([]string{at}, c)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, offset)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var found []*sarama.ConsumerMessage
	for len(found) < count {
		select {
		case message := <-partition.Messages():
			found = append(found, message)
		case <-ctx.Done():
			return nil, fmt.Errorf("after %d of %d messages: %w", len(found), count, ctx.Err())
		}
	}
	return found, nil
}

func readAll(ctx context.Context, topic string, count int, changes ...func(*sarama.Config)) ([]*sarama.ConsumerMessage, error) {
	return readFrom(ctx, topic, sarama.OffsetOldest, count, config(changes...), cases.Bootstrap)
}

func same(found []*sarama.ConsumerMessage, sent []*sarama.ProducerMessage) error {
	if err := cases.Check("messages", len(found), len(sent)); err != nil {
		return err
	}
	for i, message := range found {
		key, value := "", string(cases.Must(sent[i].Value.Encode()))
		if sent[i].Key != nil {
			key = string(cases.Must(sent[i].Key.Encode()))
		}
		headers := make([]sarama.RecordHeader, len(message.Headers))
		for j, header := range message.Headers {
			headers[j] = *header
		}
		a := fmt.Sprintf("%s %s %s", message.Key, message.Value, headers)
		if err := cases.Check("message", a, fmt.Sprintf("%s %s %s", key, value, append([]sarama.RecordHeader{}, sent[i].Headers...))); err != nil {
			return err
		}
	}
	return nil
}

func codec(codec sarama.CompressionCodec) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		sent := withHeaders(messages(topic, 0, 500, "codec"))
		if err := produce(sent, func(c *sarama.Config) { c.Producer.Compression = codec }); err != nil {
			return err
		}
		found, err := readAll(ctx, topic, len(sent))
		return errors.Join(err, same(found, sent))
	})
}

// asRelease walks as a client that was told that the broker is of an older release.
func asRelease(version sarama.KafkaVersion) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		old := func(c *sarama.Config) {
			c.Version = version
			c.Producer.Compression = sarama.CompressionGZIP
		}
		sent := messages(topic, 0, 50, "old")
		if err := produce(sent, old); err != nil {
			return err
		}
		found, err := readAll(ctx, topic, len(sent), old)
		return errors.Join(err, same(found, sent))
	})
}

func produceAsync(ctx context.Context, topic string) error {
	producer, err := sarama.NewAsyncProducer([]string{cases.Bootstrap}, config())
	if err != nil {
		return err
	}
	sent := messages(topic, 0, 500, "async")
	go func() {
		for _, message := range sent {
			producer.Input() <- message
		}
	}()
	for range sent {
		select {
		case <-producer.Successes():
		case failed := <-producer.Errors():
			return failed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := producer.Close(); err != nil {
		return err
	}
	found, err := readAll(ctx, topic, len(sent))
	return errors.Join(err, same(found, sent))
}

func acks(wanted sarama.RequiredAcks) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		sent := messages(topic, 0, 50, "acks")
		if err := produce(sent, func(c *sarama.Config) { c.Producer.RequiredAcks = wanted }); err != nil {
			return err
		}
		found, err := readAll(ctx, topic, len(sent))
		return errors.Join(err, same(found, sent))
	})
}

func produceIdempotent(ctx context.Context, topic string) error {
	sent := messages(topic, 0, 500, "once")
	if err := produce(sent, idempotent); err != nil {
		return err
	}
	found, err := readAll(ctx, topic, len(sent))
	return errors.Join(err, same(found, sent))
}

func produceTooLarge(ctx context.Context, topic string) error {
	large := &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 2<<20))}
	err := produce([]*sarama.ProducerMessage{large}, func(c *sarama.Config) { c.Producer.MaxMessageBytes = 4 << 20 })
	var refused sarama.ProducerErrors
	if !errors.As(err, &refused) {
		return fmt.Errorf("2 MiB were taken: %v", err)
	}
	return cases.Check("refusal", refused[0].Err, sarama.ErrMessageSizeTooLarge)
}

func consumeFromOffsets(ctx context.Context, topic string) error {
	if err := produce(messages(topic, 0, 20, "at")); err != nil {
		return err
	}
	found, err := readFrom(ctx, topic, 15, 5, config(), cases.Bootstrap)
	if err != nil {
		return err
	}
	if err := cases.Check("first", string(found[0].Value), "at-0-15"); err != nil {
		return err
	}
	_, err = readFrom(ctx, topic, 21, 1, config(), cases.Bootstrap)
	return cases.Check("beyond the end", errors.Is(err, sarama.ErrOffsetOutOfRange), true)
}

func offsetsByTime(ctx context.Context, topic string) error {
	start := time.UnixMilli(1_700_000_000_000)
	sent := messages(topic, 0, 10, "t")
	for i, message := range sent {
		message.Timestamp = start.Add(time.Duration(i) * time.Second)
	}
	if err := produce(sent); err != nil {
		return err
	}
	client, err := sarama.NewClient([]string{cases.Bootstrap}, config())
	if err != nil {
		return err
	}
	defer client.Close()
	for asked, wanted := range map[int64]int64{
		start.UnixMilli() + 4001: 5, start.UnixMilli(): 0, start.UnixMilli() + 9001: -1,
		sarama.OffsetOldest: 0, sarama.OffsetNewest: 10,
	} {
		found, err := client.GetOffset(topic, 0, asked)
		if err = errors.Join(err, cases.Check(fmt.Sprint("offset at ", asked), found, wanted)); err != nil {
			return err
		}
	}
	return nil
}

// member reads in a group and counts what it sees.
type member struct {
	group  sarama.ConsumerGroup
	owned  atomic.Int32
	seen   func(string)
	ended  chan error
	cancel context.CancelFunc
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	m.owned.Store(int32(count))
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.owned.Store(0)
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.seen(string(message.Value))
			session.MarkMessage(message, "a note")
		case <-session.Context().Done():
			return nil
		}
	}
}

func join(ctx context.Context, group, topic string, seen func(string), changes ...func(*sarama.Config)) (*member, error) {
	joined, err := sarama.NewConsumerGroup([]string{cases.Bootstrap}, group, config(changes...))
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	m := &member{group: joined, seen: seen, ended: make(chan error, 1), cancel: cancel}
	go func() {
		for inner.Err() == nil {
			if err := joined.Consume(inner, []string{topic}, m); err != nil {
				m.ended <- err
				return
			}
		}
		m.ended <- nil
	}()
	return m, nil
}

func (m *member) leave() error {
	m.cancel()
	err := <-m.ended
	return errors.Join(err, m.group.Close())
}

// rebalance lets a second member join and leave while nothing is lost or read twice.
func rebalance(changes ...func(*sarama.Config)) func(context.Context) error {
	return withTopic(4, func(ctx context.Context, topic string) error {
		group, lock, times := cases.Fresh("g-"), sync.Mutex{}, map[string]int{}
		seen := func(value string) {
			lock.Lock()
			defer lock.Unlock()
			times[value]++
		}
		count := func() int {
			lock.Lock()
			defer lock.Unlock()
			return len(times)
		}
		first, err := join(ctx, group, topic, seen, changes...)
		if err != nil {
			return err
		}
		if err := cases.Until(ctx, "four partitions", func() bool { return first.owned.Load() == 4 }); err != nil {
			return err
		}
		second, err := join(ctx, group, topic, seen, changes...)
		if err != nil {
			return err
		}
		shared := func() bool { return first.owned.Load() == 2 && second.owned.Load() == 2 }
		if err := cases.Until(ctx, "two partitions each", shared); err != nil {
			return err
		}
		for partition := range int32(4) {
			if err := produce(messages(topic, partition, 50, "r")); err != nil {
				return err
			}
		}
		if err := cases.Until(ctx, "every message", func() bool { return count() == 200 }); err != nil {
			return err
		}
		if err := second.leave(); err != nil {
			return err
		}
		if err := cases.Until(ctx, "who left", func() bool { return first.owned.Load() == 4 }); err != nil {
			return err
		}
		if err := first.leave(); err != nil {
			return err
		}
		for value, number := range times {
			if number != 1 {
				return fmt.Errorf("%s was read %d times", value, number)
			}
		}
		return admin(func(cl sarama.ClusterAdmin) error {
			offsets, err := cl.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2, 3}})
			if err != nil {
				return err
			}
			for partition := range int32(4) {
				block := offsets.GetBlock(topic, partition)
				if err := cases.Check("committed", fmt.Sprint(block.Offset, " ", block.Metadata), "50 a note"); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func strategy(chosen sarama.BalanceStrategy) func(*sarama.Config) {
	return func(c *sarama.Config) {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{chosen}
	}
}

// staticMember comes back within its session and keeps what it had, without a rebalance; then it is put out by name.
func staticMember(ctx context.Context, topic string) error {
	group, named := cases.Fresh("g-"), func(c *sarama.Config) { c.Consumer.Group.InstanceId = "desk-1" }
	for range 2 {
		m, err := join(ctx, group, topic, func(string) {}, named)
		if err != nil {
			return err
		}
		if err := cases.Until(ctx, "a partition", func() bool { return m.owned.Load() == 1 }); err != nil {
			return err
		}
		if err := m.leave(); err != nil {
			return err
		}
	}
	return admin(func(cl sarama.ClusterAdmin) error {
		described, err := cl.DescribeConsumerGroups([]string{group})
		if err != nil {
			return err
		}
		for _, m := range described[0].Members {
			if err := cases.Check("instance", *m.GroupInstanceId, "desk-1"); err != nil {
				return err
			}
		}
		if err := cases.Check("members", len(described[0].Members), 1); err != nil {
			return err
		}
		left, err := cl.RemoveMemberFromConsumerGroup(group, []string{"desk-1"})
		if err != nil {
			return err
		}
		return cases.Check("removed", left.Members[0].Err, sarama.ErrNoError)
	})
}

func transactions(ctx context.Context, topic string) error {
	producer, err := sarama.NewSyncProducer([]string{cases.Bootstrap}, config(transactional("x-"+topic)))
	if err != nil {
		return err
	}
	defer producer.Close()
	for number, end := range []func() error{producer.CommitTxn, producer.AbortTxn, producer.CommitTxn} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		if err := producer.SendMessages(messages(topic, 0, 10, fmt.Sprint(number))); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	found, err := readAll(ctx, topic, 20, committed)
	if err != nil {
		return err
	}
	wanted := append(messages(topic, 0, 10, "0"), messages(topic, 0, 10, "2")...)
	if err := same(found, wanted); err != nil {
		return err
	}
	_, err = readAll(ctx, topic, 30)
	return err
}

func transactionWithOffsets(ctx context.Context, topic string) error {
	group := cases.Fresh("g-")
	producer, err := sarama.NewSyncProducer([]string{cases.Bootstrap}, config(transactional("x-"+topic)))
	if err != nil {
		return err
	}
	defer producer.Close()
	for number, end := range []func() error{producer.CommitTxn, producer.AbortTxn} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		if err := producer.SendMessages(messages(topic, 0, 5, "o")); err != nil {
			return err
		}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: int64(5 * (number + 1)), LeaderEpoch: -1}}}
		if err := producer.AddOffsetsToTxn(offsets, group); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	return admin(func(cl sarama.ClusterAdmin) error {
		found, err := cl.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return err
		}
		return cases.Check("committed", found.GetBlock(topic, 0).Offset, 5)
	})
}

func transactionFenced(ctx context.Context, topic string) error {
	old, err := sarama.NewSyncProducer([]string{cases.Bootstrap}, config(transactional("x-"+topic)))
	if err != nil {
		return err
	}
	defer old.Close()
	if err := errors.Join(old.BeginTxn(), old.SendMessages(messages(topic, 0, 1, "old"))); err != nil {
		return err
	}
	younger, err := sarama.NewSyncProducer([]string{cases.Bootstrap}, config(transactional("x-"+topic)))
	if err != nil {
		return err
	}
	defer younger.Close()
	if err := errors.Join(younger.BeginTxn(), younger.SendMessages(messages(topic, 0, 1, "young")), younger.CommitTxn()); err != nil {
		return err
	}
	if err := old.CommitTxn(); err == nil {
		return errors.New("a producer that was fenced committed")
	}
	found, err := readAll(ctx, topic, 1, committed)
	return errors.Join(err, same(found, messages(topic, 0, 1, "young")))
}

// conversation is SCRAM as sarama wants to be given it.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorized string) error {
	client, err := c.hash.NewClient(user, password, authorized)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

var hashes = map[sarama.SASLMechanism]scram.HashGeneratorFcn{
	sarama.SASLTypeSCRAMSHA256: scram.SHA256, sarama.SASLTypeSCRAMSHA512: scram.SHA512,
}

// login is nil without a variable that says where.
func login(c *sarama.Config, mechanism sarama.SASLMechanism, password string) error {
	user, err := cases.Given("SASL_USER")
	if err != nil {
		return err
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = mechanism
	c.Net.SASL.User, c.Net.SASL.Password = user, password
	if hash, ok := hashes[mechanism]; ok {
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hash} }
	}
	return nil
}

// secured produces and reads one message at a guarded listener.
func secured(where string, encrypted, certified bool, mechanism sarama.SASLMechanism) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		address, err := cases.Given(where)
		if err != nil {
			return err
		}
		c := config()
		if encrypted {
			if c.Net.TLS.Config, err = cases.TLS(certified); err != nil {
				return err
			}
			c.Net.TLS.Enable = true
		}
		if mechanism != "" {
			if err := login(c, mechanism, os.Getenv("SASL_PASSWORD")); err != nil {
				return err
			}
		}
		producer, err := sarama.NewSyncProducer([]string{address}, c)
		if err != nil {
			return err
		}
		sent := messages(topic, 0, 1, "s")
		if err := errors.Join(producer.SendMessages(sent), producer.Close()); err != nil {
			return err
		}
		found, err := readFrom(ctx, topic, sarama.OffsetOldest, 1, c, address)
		return errors.Join(err, same(found, sent))
	})
}

func wrongPassword(context.Context) error {
	address, err := cases.Given("SASL_BOOTSTRAP")
	if err != nil {
		return err
	}
	c := config()
	if err := login(c, sarama.SASLTypePlaintext, "not it"); err != nil {
		return err
	}
	broker := sarama.NewBroker(address)
	if err := broker.Open(c); err != nil {
		return err
	}
	_, err = broker.Connected()
	return cases.Check("refusal", errors.Is(err, sarama.ErrSASLAuthenticationFailed), true)
}

func main() {
	all := []cases.Case{}
	add := func(name string, run func(context.Context) error) {
		all = append(all, cases.Case{Name: name, Run: run})
	}
	for _, each := range []sarama.CompressionCodec{
		sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD,
	} {
		add("codec-"+each.String(), codec(each))
	}
	for _, version := range spoken {
		add("as-release-"+version.String(), asRelease(version))
	}
	add("produce-async", withTopic(1, produceAsync))
	add("produce-acks-0", acks(sarama.NoResponse))
	add("produce-acks-1", acks(sarama.WaitForLocal))
	add("produce-idempotent", withTopic(1, produceIdempotent))
	add("produce-too-large", withTopic(1, produceTooLarge))
	add("consume-from-offsets", withTopic(1, consumeFromOffsets))
	add("offsets-by-time", withTopic(1, offsetsByTime))
	for _, each := range []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategyRoundRobin(), sarama.NewBalanceStrategySticky(),
	} {
		add("group-rebalances-"+each.Name(), rebalance(strategy(each)))
	}
	add("group-rebalances-as-release-0.11.0", rebalance(func(c *sarama.Config) { c.Version = sarama.V0_11_0_0 }))
	add("group-static-member", withTopic(1, staticMember))
	add("transaction-committed-and-aborted", withTopic(1, transactions))
	add("transaction-with-offsets", withTopic(1, transactionWithOffsets))
	add("transaction-fenced", withTopic(1, transactionFenced))
	all = append(all, adminCases...)
	add("tls", secured("TLS_BOOTSTRAP", true, false, ""))
	add("mutual-tls", secured("MUTUAL_TLS_BOOTSTRAP", true, true, ""))
	for _, each := range []sarama.SASLMechanism{
		sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512,
	} {
		add("sasl-"+string(each), secured("SASL_BOOTSTRAP", false, false, each))
	}
	add("sasl-over-tls", secured("SASL_TLS_BOOTSTRAP", true, false, sarama.SASLTypeSCRAMSHA512))
	add("sasl-wrong-password", wrongPassword)
	os.Exit(cases.Run(all, os.Args[1:]))
}
