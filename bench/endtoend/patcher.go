//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// patchers is how many requests are made at the same time.
const patchers = 16

// Patcher is the source of changes: it annotates one pod after the other. A change is stamped just before the
// request, so the latencies of both servers contain the time that the API server takes to commit it.
type Patcher struct {
	*source.Source
	work    chan uint64
	pending sync.WaitGroup
	client  *kubernetes.Clientset
	pods    int

	mu     sync.Mutex
	failed error
	took   figures.Histogram
}

// Cluster says where to patch.
type Cluster struct {
	Kubeconfig string
	Pods       int
}

func newPatcher() *Patcher {
	p := &Patcher{work: make(chan uint64, 4096)}
	p.Source = source.New(func(m mark.Mark) {
		p.pending.Add(1)
		p.work <- m.Seq
	})
	return p
}

// Start starts the patching goroutines. It is called once.
func (p *Patcher) Start(at Cluster, _ *process.None) (err error) {
	if _, p.client, err = connect(at.Kubeconfig); err != nil {
		return err
	}
	p.pods = at.Pods
	for range patchers {
		go p.run() // lasts as long as the process
	}
	return nil
}

// Emit makes changes, and returns when they are committed.
func (p *Patcher) Emit(args source.Emit, none *process.None) error {
	if err := p.Source.Emit(args, none); err != nil {
		return err
	}
	p.pending.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Took returns how long the requests took since its last call.
func (p *Patcher) Took(_ process.None, reply *figures.Histogram) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	*reply, p.took = p.took, figures.Histogram{}
	return nil
}

func (p *Patcher) run() {
	for seq := range p.work {
		began := time.Now()
		err := p.patch(seq, began)
		p.mu.Lock()
		p.took.Add(time.Since(began))
		if err != nil && p.failed == nil {
			p.failed = err
		}
		p.mu.Unlock()
		p.pending.Done()
	}
}

func (p *Patcher) patch(seq uint64, now time.Time) error {
	patch := mark.Mark{Seq: seq, At: now.UnixNano()}.Append([]byte(`{"metadata":{"annotations":{"kubecast.io/bench":"`))
	patch = append(patch, `"}}}`...)
	name := podName(int(seq) % p.pods)
	_, err := p.client.CoreV1().Pods(namespace).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return nil
}
