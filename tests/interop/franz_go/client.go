package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tagwire/interop/cases"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func client(options ...kgo.Opt) *kgo.Client {
	return cases.Must(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cases.Bootstrap)}, options...)...))
}

// admin runs work with an admin client and a new topic.
func admin(ctx context.Context, partitions int32, work func(*kadm.Client, string) error) error {
	cl := kadm.NewClient(client())
	defer cl.Close()
	topic := cases.Fresh("t-")
	if _, err := cl.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return err
	}
	return work(cl, topic)
}

// withTopic runs work with a new topic.
func withTopic(partitions int32, work func(context.Context, string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return admin(ctx, partitions, func(_ *kadm.Client, topic string) error { return work(ctx, topic) })
	}
}

func records(topic string, partition int32, count int, tag string) []*kgo.Record {
	made := make([]*kgo.Record, count)
	for i := range made {
		made[i] = &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%s-%d-%d", tag, partition, i)}
		if i%2 == 1 {
			made[i].Key = fmt.Appendf(nil, "k%d", i)
			made[i].Headers = []kgo.RecordHeader{{Key: "origin", Value: []byte("EWR")}, {Key: "origin", Value: []byte("")}}
		}
	}
	return made
}

func produce(ctx context.Context, sent []*kgo.Record, options ...kgo.Opt) error {
	cl := client(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	defer cl.Close()
	return cl.ProduceSync(ctx, sent...).FirstErr()
}

func readAll(ctx context.Context, topic string, count int, options ...kgo.Opt) ([]*kgo.Record, error) {
	cl := client(append(options, kgo.ConsumeTopics(topic))...)
	defer cl.Close()
	var found []*kgo.Record
	for len(found) < count {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", len(found), count, err)
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}

func same(found, wanted []*kgo.Record) error {
	if err := cases.Check("records", len(found), len(wanted)); err != nil {
		return err
	}
	for i, record := range found {
		a := fmt.Sprintf("%s %s %v", record.Key, record.Value, record.Headers)
		if err := cases.Check("record", a, fmt.Sprintf("%s %s %v", wanted[i].Key, wanted[i].Value, wanted[i].Headers)); err != nil {
			return err
		}
	}
	return nil
}

func codec(compression kgo.CompressionCodec) func(context.Context) error {
	return withTopic(1, func(ctx context.Context, topic string) error {
		sent := records(topic, 0, 500, "codec")
		if err := produce(ctx, sent, kgo.ProducerBatchCompression(compression)); err != nil {
			return err
		}
		found, err := readAll(ctx, topic, len(sent))
		if err != nil {
			return err
		}
		return same(found, sent)
	})
}

func topics(ctx context.Context) error {
	return admin(ctx, 3, func(cl *kadm.Client, topic string) error {
		listed, err := cl.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if err := cases.Check("partitions", len(listed[topic].Partitions), 3); err != nil {
			return err
		}
		if _, err := cl.DeleteTopic(ctx, topic); err != nil {
			return err
		}
		listed, err = cl.ListTopics(ctx)
		return errors.Join(err, cases.Check("deleted", listed.Has(topic), false))
	})
}

// rebalance lets a second member join and leave, by an assignor, while nothing is lost or read twice.
func rebalance(balancer kgo.GroupBalancer) func(context.Context) error {
	return withTopic(4, func(ctx context.Context, topic string) error {
		group, seen := cases.Fresh("g-"), map[string]int{}
		member := func() *kgo.Client {
			return client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
				kgo.HeartbeatInterval(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		}
		poll := func(cl *kgo.Client) {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			cl.PollFetches(short).EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
			if err := cl.CommitUncommittedOffsets(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		first := member()
		defer first.Close()
		if err := cases.Until(ctx, "four partitions", func() bool { poll(first); return owned(ctx, group) == "[4]" }); err != nil {
			return err
		}
		second := member()
		shared := func() bool { poll(first); poll(second); return owned(ctx, group) == "[2 2]" }
		if err := cases.Until(ctx, "two partitions each", shared); err != nil {
			return err
		}
		for partition := range int32(4) {
			if err := produce(ctx, records(topic, partition, 50, "r")); err != nil {
				return err
			}
		}
		if err := cases.Until(ctx, "every record", func() bool { poll(first); poll(second); return len(seen) == 200 }); err != nil {
			return err
		}
		second.Close()
		if err := cases.Until(ctx, "who left", func() bool { poll(first); return owned(ctx, group) == "[4]" }); err != nil {
			return err
		}
		for value, times := range seen {
			if times != 1 {
				return fmt.Errorf("%s was read %d times", value, times)
			}
		}
		return nil
	})
}

// owned tells how many partitions each member of a stable group has.
func owned(ctx context.Context, group string) string {
	cl := kadm.NewClient(client())
	defer cl.Close()
	described := cases.Must(cl.DescribeGroups(ctx, group))[group]
	var counts []int
	for _, member := range described.Members {
		if assigned, ok := member.Assigned.AsConsumer(); ok && described.State == "Stable" {
			count := 0
			for _, topic := range assigned.Topics {
				count += len(topic.Partitions)
			}
			counts = append(counts, count)
		}
	}
	return fmt.Sprint(counts)
}

func transactions(ctx context.Context, topic string) error {
	cl := client(kgo.TransactionalID("x-"+topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	for number, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		if err := cl.ProduceSync(ctx, records(topic, 0, 10, fmt.Sprint(number))...).FirstErr(); err != nil {
			return err
		}
		if err := cl.EndTransaction(ctx, commit); err != nil {
			return err
		}
	}
	committed, err := readAll(ctx, topic, 20, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	if err := same(committed, append(records(topic, 0, 10, "0"), records(topic, 0, 10, "2")...)); err != nil {
		return err
	}
	_, err = readAll(ctx, topic, 30)
	return err
}

func transactionWithOffsets(ctx context.Context, topic string) error {
	target, group := cases.Fresh("made-"), cases.Fresh("g-")
	if err := produce(ctx, records(topic, 0, 20, "s")); err != nil {
		return err
	}
	session := cases.Must(kgo.NewGroupTransactSession(kgo.SeedBrokers(cases.Bootstrap), kgo.TransactionalID("x-"+target),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.RequireStableFetchOffsets(), kgo.AllowAutoTopicCreation(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted())))
	defer session.Close()
	for moved := 0; moved < 20; {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) { session.Produce(ctx, &kgo.Record{Topic: target, Value: r.Value}, nil) })
		ended, err := session.End(ctx, kgo.TryCommit)
		if err != nil {
			return err
		}
		if ended {
			moved += fetches.NumRecords()
		}
	}
	found, err := readAll(ctx, target, 20, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	return errors.Join(err, cases.Check("moved", len(found), 20))
}

func adminPartitions(ctx context.Context) error {
	return admin(ctx, 1, func(cl *kadm.Client, topic string) error {
		changed, err := cl.UpdatePartitions(ctx, 4, topic)
		if err = errors.Join(err, changed.Error()); err != nil {
			return err
		}
		listed, err := cl.ListTopics(ctx, topic)
		return errors.Join(err, cases.Check("partitions", len(listed[topic].Partitions), 4))
	})
}

func adminConfigs(ctx context.Context) error {
	return admin(ctx, 1, func(cl *kadm.Client, topic string) error {
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("123456")}
		changed, err := cl.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, topic)
		if err != nil {
			return err
		}
		if err := changed[0].Err; err != nil {
			return err
		}
		described, err := cl.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		for _, config := range described[0].Configs {
			if config.Key == "retention.ms" {
				return cases.Check("retention.ms", config.MaybeValue(), "123456")
			}
		}
		return fmt.Errorf("retention.ms is not described: %v", described[0].Err)
	})
}

func adminDeleteRecords(ctx context.Context) error {
	return admin(ctx, 1, func(cl *kadm.Client, topic string) error {
		if err := produce(ctx, records(topic, 0, 10, "d")); err != nil {
			return err
		}
		var offsets kadm.Offsets
		offsets.AddOffset(topic, 0, 4, -1)
		deleted, err := cl.DeleteRecords(ctx, offsets)
		if err = errors.Join(err, deleted.Error()); err != nil {
			return err
		}
		starts, err := cl.ListStartOffsets(ctx, topic)
		return errors.Join(err, cases.Check("start", starts[topic][0].Offset, 4))
	})
}

func adminGroups(ctx context.Context) error {
	return admin(ctx, 1, func(cl *kadm.Client, topic string) error {
		group := cases.Fresh("g-")
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 5, LeaderEpoch: -1, Metadata: "a note"})
		if err := cl.CommitAllOffsets(ctx, group, offsets); err != nil {
			return err
		}
		fetched, err := cl.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		listed, err := cl.ListGroups(ctx)
		if err = errors.Join(err, cases.Check("listed", listed.Groups(), []string{group})); err != nil && len(listed) == 0 {
			return err
		}
		_, err = cl.DeleteGroup(ctx, group)
		return errors.Join(err, cases.Check("metadata", fetched[topic][0].Metadata, "a note"), cases.Check("offset", fetched[topic][0].At, 5))
	})
}

func adminCluster(ctx context.Context) error {
	return admin(ctx, 1, func(cl *kadm.Client, topic string) error {
		brokers, err := cl.ListBrokers(ctx)
		if err != nil {
			return err
		}
		lag, err := cl.OffsetForLeaderEpoch(ctx, epochZero(topic))
		return errors.Join(err, cases.Check("broker", fmt.Sprintf("%s:%d", brokers[0].Host, brokers[0].Port), cases.Bootstrap),
			cases.Check("epoch's end", lag[topic][0].EndOffset, 0), lag[topic][0].Err)
	})
}

func epochZero(topic string) (asked kadm.OffsetForLeaderEpochRequest) {
	asked.Add(topic, 0, 0)
	return asked
}

// roundTrip produces and reads one record over a secured connection.
func roundTrip(ctx context.Context, where string, encrypted bool, mechanism sasl.Mechanism) error {
	address, err := cases.Given(where)
	if err != nil {
		return err
	}
	options := []kgo.Opt{kgo.SeedBrokers(address), kgo.AllowAutoTopicCreation()}
	if encrypted {
		trust, err := cases.TLS(false)
		if err != nil {
			return err
		}
		options = append(options, kgo.DialTLSConfig(trust))
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	topic := cases.Fresh("s-")
	if err := produce(ctx, records(topic, 0, 1, "s"), options...); err != nil {
		return err
	}
	_, err = readAll(ctx, topic, 1, options...)
	return err
}

func wrongPassword(ctx context.Context) error {
	address, err := cases.Given("SASL_BOOTSTRAP")
	if err != nil {
		return err
	}
	wrong := plain.Auth{User: os.Getenv("SASL_USER"), Pass: "not it"}.AsMechanism()
	cl := client(kgo.SeedBrokers(address), kgo.SASL(wrong))
	defer cl.Close()
	return cases.Check("refusal", errors.Is(cl.Ping(ctx), kerr.SaslAuthenticationFailed), true)
}

func main() {
	if len(os.Args) > 6 && os.Args[1] == "member" {
		given := append(os.Args[2:], "")
		member(given[0], given[1], given[2], given[3], given[4], given[5])
		return
	}
	if len(os.Args) > 4 && os.Args[1] == "tokens" {
		tokens(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	if len(os.Args) > 4 && os.Args[1] == "acls" {
		acls(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	user, secret := os.Getenv("SASL_USER"), os.Getenv("SASL_PASSWORD")
	secured := func(where string, encrypted bool, mechanism sasl.Mechanism) func(context.Context) error {
		return func(ctx context.Context) error { return roundTrip(ctx, where, encrypted, mechanism) }
	}
	keys := scram.Auth{User: user, Pass: secret}
	os.Exit(cases.Run([]cases.Case{
		{"topics", topics},
		{"codec-none", codec(kgo.NoCompression())},
		{"codec-gzip", codec(kgo.GzipCompression())},
		{"codec-snappy", codec(kgo.SnappyCompression())},
		{"codec-lz4", codec(kgo.Lz4Compression())},
		{"codec-zstd", codec(kgo.ZstdCompression())},
		{"group-rebalances-range", rebalance(kgo.RangeBalancer())},
		{"group-rebalances-cooperative-sticky", rebalance(kgo.CooperativeStickyBalancer())},
		{"transaction-committed-and-aborted", withTopic(1, transactions)},
		{"transaction-with-offsets", withTopic(1, transactionWithOffsets)},
		{"admin-partitions", adminPartitions},
		{"admin-configs", adminConfigs},
		{"admin-delete-records", adminDeleteRecords},
		{"admin-groups", adminGroups},
		{"admin-cluster", adminCluster},
		{"tls", secured("TLS_BOOTSTRAP", true, nil)},
		{"sasl-PLAIN", secured("SASL_BOOTSTRAP", false, plain.Auth{User: user, Pass: secret}.AsMechanism())},
		{"sasl-SCRAM-SHA-256", secured("SASL_BOOTSTRAP", false, keys.AsSha256Mechanism())},
		{"sasl-SCRAM-SHA-512", secured("SASL_BOOTSTRAP", false, keys.AsSha512Mechanism())},
		{"sasl-over-tls", secured("SASL_TLS_BOOTSTRAP", true, keys.AsSha512Mechanism())},
		{"sasl-wrong-password", wrongPassword},
	}, os.Args[1:]))
}
