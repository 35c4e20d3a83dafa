package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"tagwire/interop/cases"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

// throttles remembers for how long a broker has throttled us at most.
type throttles struct{ longest atomic.Int64 }

func (t *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.longest.Store(max(t.longest.Load(), interval.Milliseconds()))
}

// tokens is a producer that comes in by an unsecured bearer token; what it does is told in
// tests/interop/test_tokens_and_quotas.py.
func tokens(bootstrap, topic, milliseconds string) {
	bearer := oauth.Oauth(func(context.Context) (oauth.Auth, error) {
		claims := fmt.Sprintf(`{"sub":"alice","exp":%d}`, time.Now().Add(time.Hour).Unix())
		part := base64.RawURLEncoding.EncodeToString
		return oauth.Auth{Token: part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + "."}, nil
	})
	seen := &throttles{}
	cl := cases.Must(kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ClientID("franz-go"), kgo.SASL(bearer),
		kgo.WithHooks(seen), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchCompression(kgo.NoCompression())))
	sent := 0
	until := time.Now().Add(time.Duration(cases.Must(strconv.Atoi(milliseconds))) * time.Millisecond)
	for time.Now().Before(until) {
		size := 10
		if sent < 3 {
			size = 50_000
		}
		cases.Must(cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: make([]byte, size)}).First())
		sent++
		time.Sleep(100 * time.Millisecond)
	}
	cl.Close()
	fmt.Println(seen.longest.Load(), sent)
}
