// Package cases runs what is asked of a Go client, and prints a line for each.
package cases

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Failed is the exit code of a run in which a case failed.
const Failed = 3

// limit is how long a case may take.
const limit = 60 * time.Second

// ErrNotRun is wrapped by the error of a case for which the broker was not set up.
var ErrNotRun = errors.New("the broker was started without")

// Bootstrap is the broker's plain listener.
var Bootstrap = os.Getenv("BOOTSTRAP")

// Case is what one line is printed for.
type Case struct {
	Name string
	Run  func(ctx context.Context) error
}

// Given tells what the runner of the broker says about its security.
func Given(variable string) (string, error) {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return "", fmt.Errorf("%w %s", ErrNotRun, variable)
	}
	return value, nil
}

// TLS trusts the broker's authority; with `client` it shows the client's certificate.
func TLS(client bool) (*tls.Config, error) {
	authority, err := Given("CA_FILE")
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(Must(os.ReadFile(authority)))
	if client {
		file, err := Given("CLIENT_FILE")
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{Must(tls.LoadX509KeyPair(file, file))}
	}
	return config, nil
}

// Run runs those whose names are asked for, or all, and returns the exit code.
func Run(cases []Case, chosen []string) int {
	code := 0
	for _, c := range cases {
		if len(chosen) > 0 && !slices.Contains(chosen, c.Name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := inTime(ctx, c)
		cancel()
		switch {
		case err == nil:
			fmt.Println("ok", c.Name)
		case errors.Is(err, ErrNotRun):
			fmt.Printf("NOT RUN %s: %v\n", c.Name, err)
		default:
			code = Failed
			fmt.Printf("FAIL %s: %s\n", c.Name, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return code
}

// inTime gives up a case that does not, which holds nobody else: each works with clients and topics of its own.
func inTime(ctx context.Context, c Case) error {
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				ended <- fmt.Errorf("%v", fault)
			}
		}()
		ended <- c.Run(ctx)
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit + 5*time.Second):
		return fmt.Errorf("longer than %v", limit)
	}
}

// Check gives an error that says what was found where it differs from what was wanted.
func Check(what string, found, wanted any) error {
	if a, b := fmt.Sprint(found), fmt.Sprint(wanted); a != b {
		return fmt.Errorf("%s: %.150s is not %.150s", what, a, b)
	}
	return nil
}

// Until tries until it holds.
func Until(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Fresh is a name that nothing has yet.
func Fresh(prefix string) string {
	random := make([]byte, 4)
	rand.Read(random)
	return prefix + hex.EncodeToString(random)
}

// Must gives the value, or fails the case with the error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
