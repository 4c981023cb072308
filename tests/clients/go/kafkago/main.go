// kafka-go (segmentio) through every client scenario.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"clients/scenario"

	"github.com/segmentio/kafka-go"
)

var (
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Second)
	codecs      = map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy,
		"lz4": kafka.Lz4, "zstd": kafka.Zstd}
)

func api() *kafka.Client { return &kafka.Client{Addr: kafka.TCP(os.Args[1])} }

func create(topic string, partitions int) string {
	answer, err := api().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}}})
	scenario.Must(err)
	scenario.Must(answer.Errors[topic])
	return topic
}

// byPartition writes each message to the partition that its key's last byte tells.
func byPartition(message kafka.Message, partitions ...int) int {
	if len(message.Key) == 0 {
		return partitions[0]
	}
	return partitions[int(message.Key[len(message.Key)-1])%len(partitions)]
}

func send(topic, codec string, messages ...kafka.Message) {
	w := kafka.Writer{Addr: kafka.TCP(os.Args[1]), Topic: topic, BatchBytes: 20000000,
		BatchTimeout: 20 * time.Millisecond, RequiredAcks: kafka.RequireAll, MaxAttempts: 5,
		Compression: codecs[codec], Balancer: kafka.BalancerFunc(byPartition)}
	scenario.Must(w.WriteMessages(ctx, messages...))
	scenario.Must(w.Close())
}

func messages(values []string) []kafka.Message {
	list := []kafka.Message{}
	for _, value := range values {
		list = append(list, kafka.Message{Value: []byte(value)})
	}
	return list
}

func reader(topic string, partition int, group string) *kafka.Reader {
	config := kafka.ReaderConfig{Brokers: []string{os.Args[1]}, Topic: topic, Partition: partition,
		MaxBytes: 20000000, MaxWait: 200 * time.Millisecond}
	if group != "" {
		config.GroupID, config.StartOffset = group, kafka.FirstOffset
		config.HeartbeatInterval, config.SessionTimeout = 300*time.Millisecond, 6*time.Second
	}
	return kafka.NewReader(config)
}

func take(r *kafka.Reader, count int) []kafka.Message {
	got := []kafka.Message{}
	for len(got) < count {
		message, err := r.FetchMessage(ctx)
		scenario.Must(err)
		got = append(got, message)
	}
	return got
}

func read(topic string, partition, count int) []kafka.Message {
	r := reader(topic, partition, "")
	defer r.Close()
	return take(r, count)
}

func values(got []kafka.Message) []string {
	list := []string{}
	for _, message := range got {
		list = append(list, string(message.Value))
	}
	return list
}

func produceConsume(args []string) {
	topic := create(args[0], 3)
	want := make([][]string, 3)
	sent := []kafka.Message{}
	for i := range 300 {
		key, value := fmt.Sprintf("k%d", i%7), fmt.Sprintf("v%d", i)
		sent = append(sent, kafka.Message{Key: []byte(key), Value: []byte(value)})
		partition := int(key[1]) % 3
		want[partition] = append(want[partition], value)
	}
	send(topic, "none", sent...)
	for partition := range 3 {
		got := read(topic, partition, len(want[partition]))
		scenario.Same("order", values(got), want[partition])
		for i, message := range got {
			scenario.Check(message.Offset == int64(i), "offset %d", message.Offset)
		}
	}
}

func compression(args []string) {
	topic, want := create(args[0], 1), scenario.MatrixValues(args[1], 200)
	send(topic, args[1], messages(want)...)
	scenario.Same(args[1], values(read(topic, 0, 200)), want)
}

func sizes(args []string) {
	topic := create(args[0], 1)
	want := []string{"x", string(make([]byte, scenario.Big)), "z"}
	send(topic, "none", messages(want)...)
	scenario.Same("sizes", values(read(topic, 0, 3)), want)
}

func headers(args []string) {
	topic := create(args[0], 1)
	want := []kafka.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")},
		{Key: "empty", Value: []byte{}}, {Key: "\u00fc", Value: []byte{0, 255}}}
	send(topic, "none", kafka.Message{Value: []byte("v"), Headers: want}, kafka.Message{Value: []byte("w")})
	got := read(topic, 0, 2)
	scenario.Check(fmt.Sprint(got[0].Headers) == fmt.Sprint(want), "%v", got[0].Headers)
	scenario.Check(len(got[1].Headers) == 0, "%v", got[1].Headers)
}

func nulls(args []string) {
	topic := create(args[0], 1)
	send(topic, "none", kafka.Message{Value: []byte("v")}, kafka.Message{Key: []byte("k")}, kafka.Message{})
	for i, message := range read(topic, 0, 3) {
		scenario.Check((message.Key != nil) == (i == 1) && (message.Value != nil) == (i == 0),
			"record %d: %v %v", i, message.Key, message.Value)
	}
}

func offsetsByTime(args []string) {
	topic := create(args[0], 1)
	sent := []kafka.Message{}
	for i := range int64(10) {
		sent = append(sent, kafka.Message{Value: []byte("v"), Time: time.UnixMilli(scenario.BaseTime + 1000*i)})
	}
	send(topic, "none", sent...)
	for after, want := range map[int64]int64{0: 0, 1: 1, 5000: 5, 8999: 9} {
		at := time.UnixMilli(scenario.BaseTime + after)
		answer, err := api().ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
			topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.TimeOffsetOf(0, at)}}})
		scenario.Must(err)
		found := answer.Topics[topic][0]
		scenario.Must(found.Error)
		scenario.Check(found.FirstOffset == 0 && found.LastOffset == 10, "ends: %+v", found)
		_, ok := found.Offsets[want]
		scenario.Check(ok, "after %d: %+v", after, found)
	}
}

// join starts a group member that reads, reports and commits until it is closed.
func join(topic, group string, got func(kafka.Message)) (leave func()) {
	r := reader(topic, 0, group)
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			message, err := r.FetchMessage(ctx)
			if err != nil {
				return
			}
			got(message)
			scenario.Must(r.CommitMessages(ctx, message))
		}
	}()
	return func() { r.Close(); <-done }
}

// owners asks the coordinator how many partitions each member of the group has.
func owners(group string) []int {
	answer, err := api().DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	scenario.Must(err)
	counts := []int{}
	if answer.Groups[0].GroupState != "Stable" {
		return counts
	}
	for _, member := range answer.Groups[0].Members {
		total := 0
		for _, topic := range member.MemberAssignments.Topics {
			total += len(topic.Partitions)
		}
		counts = append(counts, total)
	}
	return counts
}

func rebalance(args []string) {
	topic := create(args[0], 4)
	var lock sync.Mutex
	got := []string{}
	seen := func(m kafka.Message) { lock.Lock(); got = append(got, string(m.Value)); lock.Unlock() }
	owned := func(want string) func() bool { return func() bool { return fmt.Sprint(owners(args[0])) == want } }
	first := join(topic, args[0], seen)
	scenario.Until("the first owns all", owned("[4]"))
	second := join(topic, args[0], seen)
	scenario.Until("each owns half", owned("[2 2]"))
	for partition := range 4 {
		list := messages(scenario.Numbered(fmt.Sprintf("%d-", partition), 0, 10))
		for i := range list {
			list[i].Key = []byte{byte(partition)}
		}
		send(topic, "none", list...)
	}
	scenario.Until("40 records", func() bool { lock.Lock(); defer lock.Unlock(); return len(got) >= 40 })
	second()
	scenario.Until("the first owns all again", owned("[4]"))
	first()
	scenario.Once(got, 40)
}

func committedWrite(args []string) {
	topic := create(args[0], 1)
	send(topic, "none", messages(scenario.Numbered("v", 0, 20))...)
	r := reader(topic, 0, topic)
	scenario.Must(r.CommitMessages(ctx, take(r, 7)...))
	scenario.Must(r.Close())
}

func committedRead(args []string) {
	answer, err := api().OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: args[0],
		Topics: map[string][]int{args[0]: {0}}})
	scenario.Must(err)
	at := answer.Topics[args[0]][0]
	scenario.Check(at.Error == nil && at.CommittedOffset == 7, "committed: %+v", at)
	r := reader(args[0], 0, args[0])
	scenario.Same("rest", values(take(r, 13)), scenario.Numbered("v", 7, 20))
	scenario.Must(r.Close())
}

// autoCreate writes to a topic that is not there yet (case M2).
func autoCreate(args []string) {
	w := kafka.Writer{Addr: kafka.TCP(os.Args[1]), Topic: args[0], AllowAutoTopicCreation: true,
		BatchTimeout: 20 * time.Millisecond, Balancer: kafka.BalancerFunc(byPartition)}
	scenario.Until("the topic's leader", func() bool { // unknown for a moment, not for good
		err := w.WriteMessages(ctx, messages(scenario.Numbered("v", 0, 10))...)
		scenario.Check(err == nil || errors.Is(err, kafka.UnknownTopicOrPartition) ||
			errors.Is(err, kafka.LeaderNotAvailable), "%v", err)
		return err == nil
	})
	scenario.Must(w.Close())
	scenario.Same("auto-created", values(read(args[0], 0, 10)), scenario.Numbered("v", 0, 10))
}

func write(args []string) {
	send(args[0], args[1], messages(scenario.MatrixValues(args[1], 50))...)
}

func readTopics(args []string) {
	for _, topic := range args[1:] {
		scenario.Same(topic, values(read(topic, 0, 50)), scenario.MatrixValues(scenario.Codec(topic), 50))
	}
}

func main() {
	defer cancel()
	scenario.Main(map[string]func([]string){
		"produce_consume": produceConsume, "compression": compression, "sizes": sizes,
		"headers": headers, "nulls": nulls, "offsets_by_time": offsetsByTime, "rebalance": rebalance,
		"committed_write": committedWrite, "committed_read": committedRead, "write": write,
		"read": readTopics, "auto_create": autoCreate,
	})
}
