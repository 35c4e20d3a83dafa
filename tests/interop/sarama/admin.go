package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tagwire/interop/cases"

	"github.com/IBM/sarama"
)

// adminCases are those of sarama's ClusterAdmin.
var adminCases = []cases.Case{
	{Name: "admin-topics", Run: adminTopics},
	{Name: "admin-topic-settings", Run: adminTopicSettings},
	{Name: "admin-partitions", Run: withAdmin(1, adminPartitions)},
	{Name: "admin-configs", Run: withAdmin(1, adminConfigs)},
	{Name: "admin-broker-configs", Run: withAdmin(1, adminBrokerConfigs)},
	{Name: "admin-delete-records", Run: withAdmin(1, adminDeleteRecords)},
	{Name: "admin-offsets", Run: withAdmin(1, adminOffsets)},
	{Name: "admin-groups", Run: withAdmin(1, adminGroups)},
	{Name: "admin-cluster", Run: withAdmin(1, adminCluster)},
	{Name: "admin-reassignments", Run: withAdmin(1, adminReassignments)},
	{Name: "admin-elect-leaders", Run: withAdmin(1, adminElectLeaders)},
	{Name: "admin-acls", Run: withAdmin(1, adminAcls)},
	{Name: "admin-scram-users", Run: withAdmin(1, adminScramUsers)},
	{Name: "admin-quotas", Run: withAdmin(1, adminQuotas)},
}

func admin(work func(sarama.ClusterAdmin) error) error {
	cl, err := sarama.NewClusterAdmin([]string{cases.Bootstrap}, config())
	if err != nil {
		return err
	}
	defer cl.Close()
	return work(cl)
}

// withAdmin runs work with an admin client and a new topic.
func withAdmin(partitions int32, work func(sarama.ClusterAdmin, string) error) func(context.Context) error {
	return func(context.Context) error {
		return admin(func(cl sarama.ClusterAdmin) error {
			topic := cases.Fresh("t-")
			detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}
			return errors.Join(cl.CreateTopic(topic, detail, false), work(cl, topic))
		})
	}
}

// withTopic runs work with a new topic.
func withTopic(partitions int32, work func(context.Context, string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return withAdmin(partitions, func(_ sarama.ClusterAdmin, topic string) error { return work(ctx, topic) })(ctx)
	}
}

func text(value string) *string { return &value }

func adminTopics(context.Context) error {
	return admin(func(cl sarama.ClusterAdmin) error {
		topic, detail := cases.Fresh("t-"), &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}
		if err := cl.CreateTopic(topic, detail, true); err != nil {
			return fmt.Errorf("validating: %w", err)
		}
		if err := cl.CreateTopic(topic, detail, false); err != nil {
			return err
		}
		again := cl.CreateTopic(topic, detail, false)
		if err := cases.Check("again", errors.Is(again, sarama.ErrTopicAlreadyExists), true); err != nil {
			return err
		}
		described, err := cl.DescribeTopics([]string{topic})
		if err != nil {
			return err
		}
		if err := cases.Check("partitions", len(described[0].Partitions), 3); err != nil {
			return err
		}
		assigned := cases.Fresh("t-")
		node := described[0].Partitions[0].Leader
		byHand := &sarama.TopicDetail{NumPartitions: -1, ReplicationFactor: -1, ReplicaAssignment: map[int32][]int32{0: {node}, 1: {node}}}
		if err := cl.CreateTopic(assigned, byHand, false); err != nil {
			return fmt.Errorf("assigned by hand: %w", err)
		}
		listed, err := cl.ListTopics()
		if err != nil {
			return err
		}
		if err := cases.Check("listed", listed[assigned].NumPartitions, 2); err != nil {
			return err
		}
		if err := cl.DeleteTopic(topic); err != nil {
			return err
		}
		listed, err = cl.ListTopics()
		_, found := listed[topic]
		return errors.Join(err, cases.Check("deleted", found, false))
	})
}

// adminTopicSettings creates a topic with settings that a broker of one node need not act on, too.
func adminTopicSettings(context.Context) error {
	return admin(func(cl sarama.ClusterAdmin) error {
		topic, settings := cases.Fresh("t-"), map[string]string{
			"cleanup.policy": "compact,delete", "min.insync.replicas": "1", "retention.ms": "123456", "segment.bytes": "1048576",
			"max.message.bytes": "2000000", "compression.type": "zstd", "unclean.leader.election.enable": "false",
			"message.timestamp.type": "LogAppendTime", "min.cleanable.dirty.ratio": "0.1", "delete.retention.ms": "1000",
		}
		detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
		for name, value := range settings {
			detail.ConfigEntries[name] = text(value)
		}
		if err := cl.CreateTopic(topic, detail, false); err != nil {
			return err
		}
		found, err := described(cl, sarama.TopicResource, topic)
		if err != nil {
			return err
		}
		for name, value := range settings {
			if err := cases.Check(name, found[name], value); err != nil {
				return err
			}
		}
		wrong := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{"no.such.setting": text("1")}}
		err = cl.CreateTopic(cases.Fresh("t-"), wrong, false)
		return cases.Check("no such setting", errors.Is(err, sarama.ErrInvalidConfig), true)
	})
}

func described(cl sarama.ClusterAdmin, kind sarama.ConfigResourceType, name string) (map[string]string, error) {
	entries, err := cl.DescribeConfig(sarama.ConfigResource{Type: kind, Name: name})
	found := map[string]string{}
	for _, entry := range entries {
		found[entry.Name] = entry.Value
	}
	return found, err
}

func adminPartitions(cl sarama.ClusterAdmin, topic string) error {
	if err := cl.CreatePartitions(topic, 4, nil, true); err != nil {
		return fmt.Errorf("validating: %w", err)
	}
	if err := cl.CreatePartitions(topic, 4, nil, false); err != nil {
		return err
	}
	if err := cl.CreatePartitions(topic, 2, nil, false); err == nil {
		return errors.New("a topic lost partitions")
	}
	found, err := cl.DescribeTopics([]string{topic})
	if err != nil {
		return err
	}
	return cases.Check("partitions", len(found[0].Partitions), 4)
}

func adminConfigs(cl sarama.ClusterAdmin, topic string) error {
	if err := cl.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": text("123456")}, false); err != nil {
		return err
	}
	change := map[string]sarama.IncrementalAlterConfigsEntry{
		"max.message.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: text("5000")},
		"cleanup.policy":    {Operation: sarama.IncrementalAlterConfigsOperationAppend, Value: text("compact")},
	}
	if err := cl.IncrementalAlterConfig(sarama.TopicResource, topic, change, false); err != nil {
		return err
	}
	found, err := described(cl, sarama.TopicResource, topic)
	if err != nil {
		return err
	}
	a := fmt.Sprint(found["retention.ms"], " ", found["max.message.bytes"], " ", found["cleanup.policy"])
	if err := cases.Check("settings", a, "123456 5000 delete,compact"); err != nil {
		return err
	}
	removed := map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationDelete},
	}
	if err := cl.IncrementalAlterConfig(sarama.TopicResource, topic, removed, false); err != nil {
		return err
	}
	all, err := cl.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}},
		sarama.DescribeConfigsOptions{IncludeSynonyms: true, IncludeDocumentation: true})
	if err != nil {
		return err
	}
	entry := all[0].Configs[0]
	return errors.Join(cases.Check("configs", len(all[0].Configs), 1), cases.Check("default", entry.Source == sarama.SourceTopic, false))
}

func adminBrokerConfigs(cl sarama.ClusterAdmin, topic string) error {
	brokers, _, err := cl.DescribeCluster()
	if err != nil {
		return err
	}
	found, err := described(cl, sarama.BrokerResource, fmt.Sprint(brokers[0].ID()))
	return errors.Join(err, cases.Check("some", len(found) > 0, true))
}

func adminDeleteRecords(cl sarama.ClusterAdmin, topic string) error {
	if err := produce(messages(topic, 0, 10, "d")); err != nil {
		return err
	}
	if err := cl.DeleteRecords(topic, map[int32]int64{0: 4}); err != nil {
		return err
	}
	found, err := cl.ListOffsets(map[string]map[int32]int64{topic: {0: sarama.OffsetOldest}}, nil)
	if err != nil {
		return err
	}
	return cases.Check("start", found[topic][0].Offset, 4)
}

func adminOffsets(cl sarama.ClusterAdmin, topic string) error {
	start, sent := time.UnixMilli(1_700_000_000_000), messages(topic, 0, 10, "t")
	for i, message := range sent {
		message.Timestamp = start.Add(time.Duration(9-i) * time.Second)
	}
	for _, message := range sent { // one batch each
		if err := produce([]*sarama.ProducerMessage{message}); err != nil {
			return err
		}
	}
	for asked, wanted := range map[int64]int64{
		sarama.OffsetOldest: 0, sarama.OffsetNewest: 10, start.UnixMilli() + 8500: 0,
	} {
		options := &sarama.ListOffsetsOptions{IsolationLevel: sarama.ReadCommitted}
		found, err := cl.ListOffsets(map[string]map[int32]int64{topic: {0: asked}}, options)
		if err != nil {
			return err
		}
		if err := cases.Check(fmt.Sprint("offset at ", asked), found[topic][0].Offset, wanted); err != nil {
			return err
		}
	}
	return nil
}

func adminGroups(cl sarama.ClusterAdmin, topic string) error {
	group := cases.Fresh("g-")
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{topic: {0: {Offset: 5, Metadata: "a note", LeaderEpoch: -1}}}
	if _, err := cl.AlterConsumerGroupOffsets(group, offsets, nil); err != nil {
		return err
	}
	fetched, err := cl.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return err
	}
	block := fetched.GetBlock(topic, 0)
	if block == nil {
		return errors.New("the group's offsets are not listed")
	}
	if err := cases.Check("offset", fmt.Sprint(block.Offset, " ", block.Metadata), "5 a note"); err != nil {
		return err
	}
	batch, err := cl.ListConsumerGroupOffsetsBatch(map[string]map[string][]int32{group: {topic: {0}}})
	if err != nil {
		return err
	}
	if err := cases.Check("in a batch", batch[group].Blocks[topic][0].Offset, 5); err != nil {
		return err
	}
	listed, err := cl.ListConsumerGroups()
	if err != nil {
		return err
	}
	if _, ok := listed[group]; !ok {
		return errors.New("the group is not listed")
	}
	found, err := cl.DescribeConsumerGroups([]string{group})
	if err != nil {
		return err
	}
	if err := cases.Check("state", found[0].State, "Empty"); err != nil {
		return err
	}
	if _, err := cl.Coordinator(group); err != nil {
		return err
	}
	if err := cl.DeleteConsumerGroupOffset(group, topic, 0); err != nil {
		return err
	}
	return cl.DeleteConsumerGroup(group)
}

func adminCluster(cl sarama.ClusterAdmin, topic string) error {
	brokers, controller, err := cl.DescribeCluster()
	if err != nil {
		return err
	}
	if err := errors.Join(cases.Check("broker", brokers[0].Addr(), cases.Bootstrap), cases.Check("controller", controller, brokers[0].ID())); err != nil {
		return err
	}
	directories, err := cl.DescribeLogDirs([]int32{brokers[0].ID()})
	if err != nil {
		return err
	}
	for _, directory := range directories[brokers[0].ID()] {
		if slices.ContainsFunc(directory.Topics, func(t sarama.DescribeLogDirsResponseTopic) bool { return t.Topic == topic }) {
			return cases.Check("log directory", directory.ErrorCode, sarama.ErrNoError)
		}
	}
	return errors.New("the topic is in no log directory")
}

func adminReassignments(cl sarama.ClusterAdmin, topic string) error {
	found, err := cl.DescribeTopics([]string{topic})
	if err != nil {
		return err
	}
	replicas := found[0].Partitions[0].Replicas
	moving, err := cl.ListPartitionReassignments(topic, []int32{0})
	if err != nil {
		return err
	}
	if err := cases.Check("moving", len(moving[topic]), 0); err != nil {
		return err
	}
	if err := cl.AlterPartitionReassignments(topic, [][]int32{replicas}); err != nil {
		return fmt.Errorf("to where it is: %w", err)
	}
	if err := cl.AlterPartitionReassignments(topic, [][]int32{{replicas[0] + 1000}}); err == nil {
		return errors.New("a partition moves to a broker that is not there")
	}
	return nil
}

func adminElectLeaders(cl sarama.ClusterAdmin, topic string) error {
	elected, err := cl.ElectLeaders(sarama.PreferredElection, map[string][]int32{topic: {0}})
	if err != nil {
		return err
	}
	return cases.Check("election", elected[topic][0].ErrorCode, sarama.ErrElectionNotNeeded)
}

// adminAcls finds that nothing is guarded by any: the broker has no authorizer, and says so as Kafka's does.
func adminAcls(cl sarama.ClusterAdmin, topic string) error {
	_, err := cl.ListAcls(sarama.AclFilter{
		ResourceType: sarama.AclResourceAny, ResourcePatternTypeFilter: sarama.AclPatternAny, Operation: sarama.AclOperationAny,
		PermissionType: sarama.AclPermissionAny,
	})
	if err := cases.Check("listing", errors.Is(err, sarama.ErrSecurityDisabled), true); err != nil {
		return err
	}
	acl := sarama.Acl{Principal: "User:alice", Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: topic, ResourcePatternType: sarama.AclPatternLiteral}
	if err := cl.CreateACL(resource, acl); err == nil {
		return errors.New("an ACL was taken")
	}
	return nil
}

func adminScramUsers(cl sarama.ClusterAdmin, topic string) error {
	user, err := cases.Given("SASL_USER")
	if err != nil {
		return err
	}
	found, err := cl.DescribeUserScramCredentials([]string{user, "nobody"})
	if err != nil {
		return err
	}
	const resourceNotFound = sarama.KError(91)
	for _, result := range found {
		mechanisms, wanted := len(result.CredentialInfos), map[string]string{user: "2 0", "nobody": fmt.Sprint("0 ", int16(resourceNotFound))}
		if err := cases.Check(result.User, fmt.Sprint(mechanisms, " ", int16(result.ErrorCode)), wanted[result.User]); err != nil {
			return err
		}
	}
	added, err := cl.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
		Name: "new", Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 8192, Salt: []byte("salt"), Password: []byte("secret"),
	}})
	if err = errors.Join(err, refused(added)); err != nil {
		return err
	}
	removed, err := cl.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{{
		Name: "new", Mechanism: sarama.SCRAM_MECHANISM_SHA_512,
	}})
	return errors.Join(err, refused(removed))
}

func refused(results []*sarama.AlterUserScramCredentialsResult) error {
	for _, result := range results {
		if result.ErrorCode != sarama.ErrNoError {
			return result.ErrorCode
		}
	}
	return nil
}

// adminQuotas sets one, finds it, and removes it.
func adminQuotas(cl sarama.ClusterAdmin, topic string) error {
	alice := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: "alice"}}
	for _, remove := range []bool{false, true} {
		changed := cl.AlterClientQuotas(alice, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1000, Remove: remove}, false)
		found, err := cl.DescribeClientQuotas(nil, false)
		there := map[bool]int{false: 1, true: 0}[remove]
		if err := errors.Join(changed, err, cases.Check("quotas", len(found), there)); err != nil {
			return err
		}
	}
	return nil
}
