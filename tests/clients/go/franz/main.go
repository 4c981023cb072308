// franz-go through every client scenario.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"clients/scenario"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Second)
	codecs      = map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
)

func client(options ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(os.Args[1]),
		kgo.ProducerBatchMaxBytes(20000000), kgo.MaxBufferedRecords(100),
		kgo.FetchMaxPartitionBytes(20000000),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(manualOrHash))}, options...)...)
	scenario.Must(err)
	return c
}

// manualOrHash keeps Partition as set where a key is missing, else spreads by the key's last byte.
func manualOrHash(string) func(*kgo.Record, int) int {
	return func(r *kgo.Record, n int) int {
		if len(r.Key) == 0 {
			return int(r.Partition) % n
		}
		return int(r.Key[len(r.Key)-1]) % n
	}
}

func create(topic string, partitions int32) string {
	c := client()
	defer c.Close()
	answer, err := kadm.NewClient(c).CreateTopic(ctx, partitions, 1, nil, topic)
	scenario.Must(err)
	scenario.Must(answer.Err)
	return topic
}

func send(topic, codec string, records ...*kgo.Record) {
	c := client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(20*time.Millisecond))
	defer c.Close()
	for _, result := range c.ProduceSync(ctx, records...) {
		scenario.Must(result.Err)
	}
}

func records(values []string) []*kgo.Record {
	list := []*kgo.Record{}
	for _, value := range values {
		list = append(list, kgo.StringRecord(value))
	}
	return list
}

func take(c *kgo.Client, count int) []*kgo.Record {
	got := []*kgo.Record{}
	for len(got) < count {
		fetches := c.PollRecords(ctx, count-len(got))
		scenario.Must(fetches.Err())
		got = append(got, fetches.Records()...)
	}
	return got
}

func read(topic string, count int) []*kgo.Record {
	c := client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	return take(c, count)
}

func values(got []*kgo.Record) []string {
	list := []string{}
	for _, r := range got {
		list = append(list, string(r.Value))
	}
	return list
}

func produceConsume(args []string) {
	topic := create(args[0], 3)
	sent := []*kgo.Record{}
	for i := range 300 {
		sent = append(sent, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%7), Value: fmt.Appendf(nil, "v%d", i)})
	}
	send(topic, "none", sent...)
	got := map[int32][]string{}
	for _, r := range read(topic, 300) {
		scenario.Check(r.Offset == int64(len(got[r.Partition])), "offset %d", r.Offset)
		got[r.Partition] = append(got[r.Partition], string(r.Value))
	}
	want := map[int32][]string{}
	for _, r := range sent {
		want[r.Partition] = append(want[r.Partition], string(r.Value))
	}
	for partition := range int32(3) {
		scenario.Same("order", got[partition], want[partition])
	}
}

func compression(args []string) {
	topic, want := create(args[0], 1), scenario.MatrixValues(args[1], 200)
	send(topic, args[1], records(want)...)
	scenario.Same(args[1], values(read(topic, 200)), want)
}

func sizes(args []string) {
	topic := create(args[0], 1)
	want := []string{"x", string(make([]byte, scenario.Big)), "z"}
	send(topic, "none", records(want)...)
	scenario.Same("sizes", values(read(topic, 3)), want)
}

func headers(args []string) {
	topic := create(args[0], 1)
	want := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")},
		{Key: "empty", Value: []byte{}}, {Key: "null"}, {Key: "\u00fc", Value: []byte{0, 255}}}
	send(topic, "none", &kgo.Record{Value: []byte("v"), Headers: want}, kgo.StringRecord("w"))
	got := read(topic, 2)
	scenario.Check(fmt.Sprintf("%#v", got[0].Headers) == fmt.Sprintf("%#v", want), "%#v", got[0].Headers)
	scenario.Check(len(got[1].Headers) == 0, "%#v", got[1].Headers)
}

func nulls(args []string) {
	topic := create(args[0], 1)
	sent := []*kgo.Record{{Value: []byte("v")}, {Key: []byte("k")}, {}, {Key: []byte{}, Value: []byte{}}}
	send(topic, "none", sent...)
	for i, r := range read(topic, 4) {
		scenario.Check((r.Key == nil) == (sent[i].Key == nil) && (r.Value == nil) == (sent[i].Value == nil) &&
			string(r.Key) == string(sent[i].Key) && string(r.Value) == string(sent[i].Value), "record %d", i)
	}
}

func offsetsByTime(args []string) {
	topic := create(args[0], 1)
	sent := []*kgo.Record{}
	for i := range int64(10) {
		sent = append(sent, &kgo.Record{Value: []byte("v"), Timestamp: time.UnixMilli(scenario.BaseTime + 1000*i)})
	}
	send(topic, "none", sent...)
	c := client()
	defer c.Close()
	admin := kadm.NewClient(c)
	for after, want := range map[int64]int64{0: 0, 1: 1, 5000: 5, 8999: 9, 9001: 10} {
		listed, err := admin.ListOffsetsAfterMilli(ctx, scenario.BaseTime+after, topic)
		scenario.Must(err)
		found, _ := listed.Lookup(topic, 0)
		scenario.Check(found.Err == nil && found.Offset == want, "after %d: %+v", after, found)
		scenario.Check(want == 10 || found.Timestamp == scenario.BaseTime+1000*want, "%+v", found)
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	scenario.Must(err)
	ends, err := admin.ListEndOffsets(ctx, topic)
	scenario.Must(err)
	scenario.Check(starts[topic][0].Offset == 0 && ends[topic][0].Offset == 10, "%v %v", starts, ends)
	newest, err := admin.ListMaxTimestampOffsets(ctx, topic)
	scenario.Must(err)
	scenario.Check(newest[topic][0].Offset == 9, "max timestamp: %+v", newest[topic][0])
}

// member is a consumer in a group that polls in the background and knows what it owns.
type member struct {
	c     *kgo.Client
	lock  sync.Mutex
	owned map[int32]bool
	stop  context.CancelFunc
	done  chan bool
}

func (m *member) owns() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return len(m.owned)
}

func (m *member) change(parts map[string][]int32, owned bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, list := range parts {
		for _, partition := range list {
			if owned {
				m.owned[partition] = true
			} else {
				delete(m.owned, partition)
			}
		}
	}
}

func join(topic, group string, got func(string)) *member {
	m := &member{owned: map[int32]bool{}, done: make(chan bool)}
	assigned := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(p, true) }
	lost := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(p, false) }
	m.c = client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.SessionTimeout(6*time.Second), kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost), kgo.BlockRebalanceOnPoll())
	poll, stop := context.WithCancel(ctx)
	m.stop = stop
	go func() {
		defer close(m.done)
		for poll.Err() == nil {
			list := m.c.PollFetches(poll).Records()
			for _, r := range list {
				got(string(r.Value))
			}
			if len(list) > 0 {
				scenario.Must(m.c.CommitRecords(ctx, list...))
			}
			m.c.AllowRebalance()
		}
	}()
	return m
}

func (m *member) leave() {
	m.stop()
	<-m.done
	m.c.CloseAllowingRebalance()
}

func rebalance(args []string) {
	topic := create(args[0], 4)
	var lock sync.Mutex
	got := []string{}
	seen := func(value string) { lock.Lock(); got = append(got, value); lock.Unlock() }
	first := join(topic, args[0], seen)
	scenario.Until("the first owns all", func() bool { return first.owns() == 4 })
	second := join(topic, args[0], seen)
	scenario.Until("each owns half", func() bool { return first.owns() == 2 && second.owns() == 2 })
	for partition := range int32(4) {
		list := records(scenario.Numbered(fmt.Sprintf("%d-", partition), 0, 10))
		for _, r := range list {
			r.Partition = partition
		}
		send(topic, "none", list...)
	}
	scenario.Until("40 records", func() bool { lock.Lock(); defer lock.Unlock(); return len(got) >= 40 })
	second.leave()
	scenario.Until("the first owns all again", func() bool { return first.owns() == 4 })
	first.leave()
	scenario.Once(got, 40)
}

func groupReader(tag string) *kgo.Client {
	return client(kgo.ConsumeTopics(tag), kgo.ConsumerGroup(tag), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func committedWrite(args []string) {
	topic := create(args[0], 1)
	send(topic, "none", records(scenario.Numbered("v", 0, 20))...)
	c := groupReader(topic)
	scenario.Must(c.CommitRecords(ctx, take(c, 7)...))
	c.Close()
}

func committedRead(args []string) {
	c := groupReader(args[0])
	offsets, err := kadm.NewClient(c).FetchOffsets(ctx, args[0])
	scenario.Must(err)
	at, ok := offsets.Lookup(args[0], 0)
	scenario.Check(ok && at.At == 7, "committed: %+v", at)
	scenario.Same("rest", values(take(c, 13)), scenario.Numbered("v", 7, 20))
	c.Close()
}

func write(args []string) {
	send(args[0], args[1], records(scenario.MatrixValues(args[1], 50))...)
}

func readTopics(args []string) {
	for _, topic := range args[1:] {
		scenario.Same(topic, values(read(topic, 50)), scenario.MatrixValues(scenario.Codec(topic), 50))
	}
}

func main() {
	defer cancel()
	scenario.Main(map[string]func([]string){
		"produce_consume": produceConsume, "compression": compression, "sizes": sizes,
		"headers": headers, "nulls": nulls, "offsets_by_time": offsetsByTime, "rebalance": rebalance,
		"committed_write": committedWrite, "committed_read": committedRead, "write": write,
		"read": readTopics,
	})
}
