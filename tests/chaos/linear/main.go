// Judges whether what clients saw of registers is linearizable, with porcupine.
//
// A register is a partition: a write appends a value and is told its offset, a read tells the end of
// the log and the value before it. Each operation took effect at one moment between its call and its
// return, so that all of them can be put in one order in which every write is at the end that the
// writes before it made, and every read tells the end and the last value of just then.
//
// usage: linear HISTORY SECONDS
//
//	write KEY CALL RETURN VALUE OFFSET   RETURN is - when nobody was told: it lies at OFFSET, and
//	                                     took effect at any time after CALL
//	read KEY CALL RETURN VALUE END       VALUE is - of an empty register, ? when it is not known
//
// Exit status: 0 all are linearizable, 1 one is not (standard output says where the search ended),
// 2 the history is no history, 3 not judged in so many seconds.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	write bool
	value string
	at    int64 // of a write its offset, of a read the end
}

type state struct {
	end  int64
	last string
}

func (o operation) String() string {
	if o.write {
		return fmt.Sprintf("write %s at %d", o.value, o.at)
	}
	return fmt.Sprintf("read of %s, end %d", o.value, o.at)
}

func step(before, input, _ any) (bool, any) {
	now, op := before.(state), input.(operation)
	if op.at != now.end {
		return false, now
	}
	if op.write {
		return true, state{now.end + 1, op.value}
	}
	return op.value == "?" || op.value == now.last, now
}

var register = porcupine.Model{
	Init:  func() any { return state{0, "-"} },
	Step:  step,
	Equal: func(one, other any) bool { return one == other },
	Hash:  func(one any) uint64 { return uint64(one.(state).end) },
}

func parse(line string) (key string, op porcupine.Operation, err error) {
	words := strings.Fields(line)
	if len(words) != 6 || (words[0] != "write" && words[0] != "read") {
		return "", op, fmt.Errorf("no operation: %q", line)
	}
	if words[3] == "-" && words[0] == "write" {
		words[3] = strconv.FormatInt(math.MaxInt64, 10)
	}
	var numbers [3]int64
	for i, at := range []int{2, 3, 5} {
		if numbers[i], err = strconv.ParseInt(words[at], 10, 64); err != nil {
			return "", op, err
		}
	}
	if numbers[0] > numbers[1] {
		return "", op, fmt.Errorf("it returns before it is called: %q", line)
	}
	op.Call, op.Return = numbers[0], numbers[1]
	op.Input = operation{words[0] == "write", words[4], numbers[2]}
	return words[1], op, nil
}

func read(path string) (map[string][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found := map[string][]porcupine.Operation{}
	for lines := bufio.NewScanner(file); ; {
		if !lines.Scan() {
			return found, lines.Err()
		}
		key, op, err := parse(lines.Text())
		if err != nil {
			return nil, err
		}
		found[key] = append(found[key], op)
	}
}

// Where the longest order that there is comes to its end.
func explain(key string, history []porcupine.Operation, limit time.Duration) {
	_, info := porcupine.CheckOperationsVerbose(register, history, limit)
	var longest []porcupine.Operation
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed, last := map[any]int{}, "the beginning"
	for _, op := range longest {
		placed[[3]any{op.Input, op.Call, op.Return}]++
		last = op.Input.(operation).String()
	}
	var left []porcupine.Operation
	for _, op := range history {
		if placed[[3]any{op.Input, op.Call, op.Return}]--; placed[[3]any{op.Input, op.Call, op.Return}] < 0 {
			left = append(left, op)
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].Return < left[j].Return })
	fmt.Printf("register %s: no order of %d operations: %d have one, up to %s; there is no place for "+
		"%s [%d, %d]\n", key, len(history), len(longest), last, left[0].Input, left[0].Call,
		left[0].Return)
}

func judge(histories map[string][]porcupine.Operation, limit time.Duration) int {
	status, end, count := 0, time.Now().Add(limit), 0
	for key, history := range histories {
		left := max(time.Until(end), time.Millisecond)
		switch porcupine.CheckOperationsTimeout(register, history, left) {
		case porcupine.Illegal:
			explain(key, history, limit)
			return 1
		case porcupine.Unknown:
			fmt.Printf("register %s: %d operations are not judged in %v\n", key, len(history), limit)
			status = 3
		}
		count += len(history)
	}
	if status == 0 {
		fmt.Printf("%d operations on %d registers are linearizable\n", count, len(histories))
	}
	return status
}

func main() {
	if len(os.Args) != 3 {
		fmt.Println("usage: linear HISTORY SECONDS")
		os.Exit(2)
	}
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	histories, err := read(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	os.Exit(judge(histories, time.Duration(seconds)*time.Second))
}
