// Package scenario is what the Go clients share: the command line, the test data, and checks.
//
// usage of a client program: PROGRAM BOOTSTRAP SCENARIO TAG [ARGUMENT..]
// Exit status 0 is a pass, 77 a skip with its reason as the last line, anything else a failure.
package scenario

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	Big      = 10 * 1000 * 1000
	BaseTime = int64(1600000000000) // of the records in offsets_by_time, plus 1000 per offset
)

// Check ends the program as failed unless ok.
func Check(ok bool, format string, args ...any) {
	if !ok {
		fmt.Printf(format+"\n", args...)
		os.Exit(1)
	}
}

// Must ends the program as failed when err is set.
func Must(err error) { Check(err == nil, "%v", err) }

// Skip ends the program as skipped.
func Skip(reason string) {
	fmt.Println(reason)
	os.Exit(77)
}

// MatrixValues is what the scenario write produces and read expects.
func MatrixValues(codec string, count int) []string {
	values := make([]string, count)
	for i := range values {
		values[i] = strings.Repeat(fmt.Sprintf("%s-%d-", codec, i), 20)
	}
	return values
}

// Numbered is prefix0, prefix1 and so on.
func Numbered(prefix string, from, to int) []string {
	values := []string{}
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprintf("%s%d", prefix, i))
	}
	return values
}

// Same checks that two lists are equal.
func Same(what string, got, want []string) {
	Check(len(got) == len(want), "%s: %d values, want %d", what, len(got), len(want))
	for i := range got {
		Check(got[i] == want[i], "%s: value %d is %.60q, want %.60q", what, i, got[i], want[i])
	}
}

// Once checks that the list holds count different values.
func Once(got []string, count int) {
	seen := map[string]bool{}
	for _, value := range got {
		seen[value] = true
	}
	Check(len(got) == count && len(seen) == count, "%d values, %d distinct, want %d once", len(got),
		len(seen), count)
}

// Until waits for a state, with a limit.
func Until(what string, state func() bool) {
	end := time.Now().Add(30 * time.Second)
	for !state() {
		Check(time.Now().Before(end), "not within 30 s: %s", what)
		time.Sleep(10 * time.Millisecond)
	}
}

// Codec is the last part of a topic name of the scenario write.
func Codec(topic string) string { return topic[strings.LastIndex(topic, "-")+1:] }

// Main runs the scenario that the command line names.
func Main(scenarios map[string]func(args []string)) {
	run := scenarios[os.Args[2]]
	if run == nil {
		Skip("no such scenario for this client: " + os.Args[2])
	}
	run(os.Args[3:])
	fmt.Println("ok")
}
