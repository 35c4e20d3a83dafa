package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tagwire/interop/cases"

	"github.com/twmb/franz-go/pkg/kgo"
)

// member is a member of a group until it is told to leave; its arguments are told in tests/interop/group_members.py.
func member(bootstrap, topic, group, assignor, path, target string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out := cases.Must(os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
	defer out.Close()
	owned := &ownedPartitions{out: out}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if assignor == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())) // the server's uniform one
	} else {
		balancer := map[string]kgo.GroupBalancer{
			"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
			"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
		}[assignor]
		options = append(options, kgo.Balancers(balancer), kgo.SessionTimeout(3*time.Second),
			kgo.HeartbeatInterval(300*time.Millisecond))
	}
	if target != "" {
		copyRecords(ctx, topic, target, owned, append(options, kgo.TransactionalID(path),
			kgo.TransactionTimeout(5*time.Second), kgo.RequireStableFetchOffsets()))
		return
	}
	cl := cases.Must(kgo.NewClient(append(options, kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsAssigned(owned.assigned),
		kgo.OnPartitionsRevoked(owned.gone), kgo.OnPartitionsLost(owned.gone))...))
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		var lines strings.Builder
		fetches.EachRecord(func(r *kgo.Record) { fmt.Fprintf(&lines, "%s\n", r.Value) })
		cases.Must(out.WriteString(lines.String()))
		if fetches.NumRecords() > 0 {
			if err := cl.CommitUncommittedOffsets(ctx); err != nil { // who has the partition now reads these again
				fmt.Fprintln(os.Stderr, err)
			}
		}
		cl.AllowRebalance()
	}
	cl.CloseAllowingRebalance()
}

// copyRecords copies what it reads in transactions, with the offsets. What it owns is told by the offsets that it keeps:
// a session passes on the first revocation of a transaction alone.
func copyRecords(ctx context.Context, topic, target string, owned *ownedPartitions, options []kgo.Opt) {
	session := cases.Must(kgo.NewGroupTransactSession(options...))
	defer session.Close()
	for ctx.Err() == nil {
		waiting, enough := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := session.PollFetches(waiting)
		enough()
		owned.are(slices.Sorted(maps.Keys(session.Client().CommittedOffsets()[topic])))
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			panic(err)
		}
		all := context.WithoutCancel(ctx)
		fetches.EachRecord(func(r *kgo.Record) { session.Produce(all, &kgo.Record{Topic: target, Value: r.Value}, nil) })
		if _, err := session.End(all, kgo.TryCommit); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// ownedPartitions writes a line whenever a member has others.
type ownedPartitions struct {
	lock sync.Mutex
	out  *os.File
	now  []int32
}

func (o *ownedPartitions) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	o.change(func() {
		for _, partitions := range added {
			o.now = append(o.now, partitions...)
		}
	})
}

func (o *ownedPartitions) gone(_ context.Context, _ *kgo.Client, removed map[string][]int32) {
	o.change(func() {
		for _, partitions := range removed {
			o.now = slices.DeleteFunc(o.now, func(p int32) bool { return slices.Contains(partitions, p) })
		}
	})
}

func (o *ownedPartitions) are(partitions []int32) {
	if !slices.Equal(partitions, o.now) {
		o.change(func() { o.now = partitions })
	}
}

func (o *ownedPartitions) change(by func()) {
	o.lock.Lock()
	defer o.lock.Unlock()
	by()
	slices.Sort(o.now)
	fmt.Fprintln(o.out, strings.TrimSuffix("= "+strings.Trim(fmt.Sprint(o.now), "[]"), " "))
}
