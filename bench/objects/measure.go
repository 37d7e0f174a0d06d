//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/pods"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// config lifts the limits that would count all clients as one, and has a ring that holds 13 s of the changes, where the default
// one holds 3; all else is the default.
const config = `auth: {anonymous: true}
authorizer: {mode: sar}
cache: {preload: [pods]}
ring: {events: 65536, bytes: 512Mi}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
`

const (
	watchPath = "/api/v1/pods?watch=true&sendInitialEvents=false"
	// patience is how long a gateway may take until it has read everything, or is level again.
	patience = 10 * time.Minute
	// fresh is how old a change may be that counts for a live page: see load.Begin.
	fresh = 20 * time.Second
)

// questions is how many live pages there are, each with another question.
const questions = 20

// question is the path of a live page of 50 rows: four orders, each about all pods but those of one namespace.
func question(number int) string {
	orders := []string{"-metadata.resourceVersion", "-metadata.creationTimestamp", "spec.nodeName,metadata.name", "status.phase,-status.startTime"}
	query := url.Values{"limit": {"50"}, "sort": {orders[number%len(orders)]}, "fieldSelector": {fmt.Sprintf("metadata.namespace!=team-%d", number/len(orders))}}
	return "/api/v1/pods?" + query.Encode()
}

// server is the gateway that is measured, and the API server behind it.
type server struct {
	*gateway.Gateway
	source *process.Child
}

func (s *server) stop() {
	if s.Gateway != nil {
		s.Gateway.Kill() // its clients are gone
	}
	s.source.Kill()
}

// measure measures a number of pods, and adds what it finds to the tables.
func (b *bench) measure(size int, reading, changing *figures.Table) error {
	s, err := b.read(size, reading)
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return err
	}
	target := load.Target{Address: s.Address, Path: watchPath}
	if err := b.Load.Call("Open", load.Open{Group: "stream", Clients: 1, Target: target}, nil); err != nil {
		return err
	}
	defer b.Close("stream")
	if err := b.Load.Call("Open", load.Open{Group: "back", Clients: 1, Target: target}, nil); err != nil {
		return err
	}
	defer b.Close("back")
	target = load.Target{Address: s.Address, Snapshot: true}
	for number := range questions {
		target.Users = append(target.Users, load.User{Path: question(number)})
	}
	if err := b.Load.Call("Open", load.Open{Group: "pages", Clients: questions, Target: target}, nil); err != nil {
		return err
	}
	defer b.Close("pages")
	var stats load.Stats
	if err := b.Load.Call("Await", load.Await{Group: "pages", Until: load.Synced, Quiet: time.Minute}, &stats); err != nil {
		return err
	}
	if stats.Synced != questions {
		return fmt.Errorf("%d of %d pages are there", stats.Synced, questions)
	}
	if err := b.changes(s, size, changing, "", nil); err != nil {
		return err
	}
	return b.changes(s, size, changing, "listed anew", func() error { return s.source.Call("Expire", nil, nil) })
}

// read starts a gateway, and measures how it reads everything.
func (b *bench) read(size int, t *figures.Table) (s *server, err error) {
	s = &server{}
	if s.source, err = process.StartChild("apiserver"); err != nil {
		return nil, err
	}
	var address string
	if err := s.source.Call("Start", size, &address); err != nil {
		return s, err
	}
	dir := filepath.Join(b.dir, fmt.Sprint(size))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return s, err
	}
	kubeconfig, err := gateway.Kubeconfig(dir, "http://"+address)
	if err != nil {
		return s, err
	}
	began := time.Now()
	if s.Gateway, err = gateway.Start(gateway.Options{Binary: b.binary, Dir: dir, Config: config, Kubeconfig: kubeconfig, Within: patience}); err != nil {
		return s, err
	}
	took := time.Since(began)
	cpu, err := process.CPU(s.Pid)
	if err != nil {
		return s, err
	}
	if _, err := s.Read("/debug/pprof/heap?gc=1"); err != nil { // what reading has left is collected
		return s, err
	}
	memory, err := process.ReadMemory(s.Pid)
	if err != nil {
		return s, err
	}
	b.save(s, fmt.Sprintf("%d", size), map[string]string{".heap": "/debug/pprof/heap"})
	json := 0
	render := pods.Many(templates, namespaces)
	for number := range templates {
		json += len(render(number, 1000, mark.Mark{}))
	}
	total := float64(json) / templates * float64(size)
	t.Add(size, total/1e6, took.Seconds(), cpu.Seconds(), total/1e6/cpu.Seconds(), mebibytes(memory.Now), mebibytes(memory.Peak),
		float64(memory.Now)/float64(size)/1024, float64(memory.Now)/total)
	if size == 1_000_000 {
		t.Reach("seconds until a million pods are read", took.Seconds(), 90)
		t.Reach("GiB with a million pods", float64(memory.Now)/(1<<30), 9)
	}
	return s, nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// changes measures what clients notice of changes, and of something that happens meanwhile.
func (b *bench) changes(s *server, size int, t *figures.Table, name string, meanwhile func() error) error {
	var seq uint64
	if err := s.source.Call("Next", nil, &seq); err != nil {
		return err
	}
	for group, within := range map[string]time.Duration{"stream": 0, "back": 0, "pages": fresh} {
		if err := b.Load.Call("Begin", load.Begin{Group: group, Seq: seq, Fresh: within}, nil); err != nil {
			return err
		}
	}
	asked, stop := probes("http://"+s.Address+"/api/v1/namespaces/"+pods.NamespaceOf(0, namespaces)+"/pods?limit=1&fields=metadata.name",
		"http://"+s.Address+"/api/v1/namespaces/"+pods.NamespaceOf(1, namespaces)+"/pods?limit=50&sort=-metadata.creationTimestamp")
	before, err := process.CPU(s.Pid)
	if err != nil {
		return errors.Join(err, stop())
	}
	count := int(b.rate * b.during.Seconds())
	emitted := make(chan error, 1)
	go func() { emitted <- s.source.Call("Emit", source.Emit{Rate: b.rate, Count: count}, nil) }()
	if b.profile != "" {
		go b.save(s, fmt.Sprintf("%d%s", size, name), map[string]string{".cpu": fmt.Sprintf("/debug/pprof/profile?seconds=%d", int((b.during * 3 / 4).Seconds()))})
	}
	time.Sleep(b.during / 4)
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return errors.Join(err, stop())
		}
	}
	back, err := b.back(s)
	if err = errors.Join(err, <-emitted); err != nil {
		return errors.Join(err, stop())
	}
	var told, pages load.Stats
	err = b.Load.Call("Await", load.Await{Group: "stream", Until: load.Delivered, Count: uint64(count), Quiet: 20 * time.Second}, &told)
	if err = errors.Join(err, b.Load.Call("Stats", "pages", &pages), stop()); err != nil {
		return err
	}
	after, err := process.CPU(s.Pid)
	if err != nil {
		return err
	}
	memory, err := process.ReadMemory(s.Pid)
	if err != nil {
		return err
	}
	missed := uint64(count) - told.Delivered
	if meanwhile == nil { // a list tells only the newest version of each
		b.Expect(fmt.Sprint(size), "missed", missed)
	}
	b.Expect(fmt.Sprint(size), "repeated or in disorder", told.Repeated+told.Disordered)
	at := func(h figures.Histogram, q float64) float64 { return figures.Milliseconds(h.Quantile(q)) }
	object, list := asked[0].taken, asked[1].taken
	t.Add(size, name, figures.Microseconds(after-before)/float64(count), at(told.Latency, 0.5), at(told.Latency, 0.99), at(told.Latency, 1),
		at(pages.Latency, 0.99), at(object, 0.99), at(object, 1), at(list, 0.99), at(list, 1), figures.Milliseconds(back), missed, told.Resets,
		mebibytes(memory.Now), mebibytes(memory.Peak))
	if size == 1_000_000 && meanwhile == nil {
		t.Reach("p99 ms of a change among a million pods", at(told.Latency, 0.99), 1000)
	}
	return nil
}

// back lets a client go, and come back at its position a second later. It returns how long that takes until it is told what
// has changed since it came back.
func (b *bench) back(s *server) (time.Duration, error) {
	position := load.Target{Address: s.Address, Path: watchPath}
	if err := b.Load.Call("Leave", "back", nil); err != nil {
		return 0, err
	}
	time.Sleep(time.Second)
	if err := b.Load.Call("Reopen", load.Reopen{Group: "back", Resume: true, Target: position}, nil); err != nil {
		return 0, err
	}
	var stats load.Stats
	if err := b.Load.Call("Await", load.Await{Group: "back", Until: load.Live, Quiet: time.Minute}, &stats); err != nil {
		return 0, err
	}
	if stats.Live != 1 {
		return 0, errors.New("a client that came back at its position is told nothing")
	}
	return stats.LiveAfter.Max, nil
}

// save saves profiles of a gateway.
func (b *bench) save(s *server, name string, paths map[string]string) {
	if b.profile == "" {
		return
	}
	err := os.MkdirAll(b.profile, 0o755)
	for suffix, path := range paths {
		if err == nil {
			err = s.Save(path, filepath.Join(b.profile, name+suffix))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
	}
}
