// What franz-go asks of a broker: a line for each case.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// limit is how long a case may take.
const limit = 60 * time.Second

// failed is the exit code of a run in which a case failed.
const failed = 3

// errNotRun is wrapped by the error of a case for which the broker was not set up.
var errNotRun = errors.New("the broker was started without")

type testCase struct {
	name string
	run  func(ctx context.Context) error
}

// given tells what the runner of the broker says about its security.
func given(variable string) (string, error) {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return "", fmt.Errorf("%w %s", errNotRun, variable)
	}
	return value, nil
}

// runCases runs those whose names are asked for, or all, and returns the exit code.
func runCases(cases []testCase, chosen []string) int {
	code := 0
	for _, c := range cases {
		if len(chosen) > 0 && !slices.Contains(chosen, c.name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := c.run(ctx)
		cancel()
		switch {
		case err == nil:
			fmt.Println("ok", c.name)
		case errors.Is(err, errNotRun):
			fmt.Printf("NOT RUN %s: %v\n", c.name, err)
		default:
			code = failed
			fmt.Printf("FAIL %s: %s\n", c.name, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return code
}

// check gives an error that says what was found where it differs from what was wanted.
func check(what string, found, wanted any) error {
	if a, b := fmt.Sprint(found), fmt.Sprint(wanted); a != b {
		return fmt.Errorf("%s: %.150s is not %.150s", what, a, b)
	}
	return nil
}

// until tries until it holds.
func until(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
