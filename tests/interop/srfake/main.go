// A registry of franz-go's own making, in memory: prints its URL, and ends with its standard input.
//
// Argument: what the Authorization header of every request has to be; none where anyone may ask.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

func main() {
	var options []srfake.Option
	if len(os.Args) > 1 {
		options = append(options, srfake.WithAuth(os.Args[1]))
	}
	registry := srfake.New(options...)
	defer registry.Close()
	fmt.Println(registry.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
