// Helpers of the Go case: steps that print and check their outcome, replies as text, waits for events.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const eventLimit = 20 * time.Second

var (
	address  = os.Getenv("HOST") + ":" + os.Getenv("PORT")
	holdfast = os.Getenv("HOLDFAST") == "1"
)

func fail(format string, words ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", words...)
	os.Exit(1)
}

// Returns a value from redigo on one line: bulk strings quoted, statuses bare.
func shown(value interface{}) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case []byte:
		return fmt.Sprintf("%q", v)
	case string:
		return v
	case error:
		return "error " + v.Error()
	case []interface{}:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = shown(part)
		}
		return "[" + strings.Join(parts, " ") + "]"
	default:
		return fmt.Sprintf("%v", v)
	}
}

// Prints `name: outcome`, the same on every run. Ends the program if the outcome is not the expected one.
func step(name string, got interface{}, expected string) {
	text := shown(got)
	fmt.Printf("%s: %s\n", name, text)
	if text != expected {
		fail("%s: expected %s, got %s", name, expected, text)
	}
}

// A step with commands of Holdfast, which only its side of the comparison runs.
func native(name string, got interface{}, expected string) {
	step("native: "+name, got, expected)
}

// A step of one command.
func send(c redis.Conn, expected string, command string, words ...interface{}) {
	name := strings.ToLower(command)
	if len(words) > 0 {
		name += fmt.Sprintf(" %.30q", fmt.Sprint(words...))
	}
	step(name, outcome(c.Do(command, words...)), expected)
}

// Returns the value or the error of a call.
func outcome(value interface{}, err error) interface{} {
	if err != nil {
		return err
	}
	return value
}

func dial(options ...redis.DialOption) redis.Conn {
	options = append(options, redis.DialReadTimeout(eventLimit))
	c, err := redis.Dial("tcp", address, options...)
	if err != nil {
		fail("no connection: %v", err)
	}
	return c
}

// Polls until the condition is true.
func until(what string, condition func() bool) {
	for end := time.Now().Add(eventLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	fail("%s: did not happen in %v", what, eventLimit)
}
