package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"tagwire/interop/cases"
)

// acls does what tests/interop/test_acl_clients.py tells, and prints what becomes of it.
func acls(bootstrap, user, password string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := func(more ...kgo.Opt) *kgo.Client {
		login := kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism())
		return cases.Must(kgo.NewClient(append(more, kgo.SeedBrokers(bootstrap), login, kgo.ClientID("franz-go"))...))
	}
	say := func(what string, err error) {
		var told *kerr.Error
		switch {
		case err == nil:
			fmt.Println(what, "NONE")
		case errors.As(err, &told):
			fmt.Println(what, told.Message)
		default:
			fmt.Println(what, err)
		}
	}
	send := func(cl *kgo.Client, topic string) error {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
	}
	fetch := func(topic, group string) error {
		cl := client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer cl.Close()
		for {
			found := cl.PollFetches(ctx)
			for _, err := range found.Errors() {
				return err.Err
			}
			if found.NumRecords() > 0 {
				return nil
			}
		}
	}
	transact := func(id, topic string) error {
		cl := client(kgo.TransactionalID(id))
		defer cl.Close()
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		if err := send(cl, topic); err != nil {
			return err
		}
		return cl.EndTransaction(ctx, kgo.TryCommit)
	}
	cl := client()
	defer cl.Close()
	say("allowed-topic", send(cl, "shop.orders"))
	say("denied-topic", send(cl, "shop.secret"))
	say("unnamed-topic", send(cl, "other"))
	say("allowed-group", fetch("shop.orders", "shop.readers"))
	say("denied-group", fetch("shop.orders", "others"))
	say("denied-read", fetch("shop.secret", "shop.readers-2"))
	say("allowed-transaction", transact("shop.tx", "shop.orders"))
	say("denied-transaction", transact("others", "shop.orders"))
}
