//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// fleet is the replicas of a gateway.
type fleet struct {
	*files
	binary string
	drain  time.Duration
	all    []*replica
}

// replica has its addresses also while it does not run. Others ask for its load by another address, named, which leads to the
// first replica meanwhile: as a name's does whose address is gone, it is then one that is found twice.
type replica struct {
	public, ops, named string
	log                string // its file

	mu      sync.Mutex
	process *process.Process // nil: it does not run
}

func newFleet(binary, dir, apiServer string, most int, drain time.Duration) (*fleet, error) {
	f := &fleet{files: &files{dir: dir, url: apiServer}, binary: binary, drain: drain}
	addresses := make([]string, 2*most)
	for i := range addresses { // all at once, so that none is found twice
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	for i := range most {
		r := &replica{public: addresses[2*i], ops: addresses[2*i+1], log: f.path(fmt.Sprintf("gateway-%d.log", i))}
		f.all = append(f.all, r)
		named, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		r.named = named.Addr().String()
		go f.relay(named, r)
	}
	return f, f.rotate()
}

func (f *fleet) relay(named net.Listener, r *replica) {
	for {
		from, err := named.Accept()
		if err != nil {
			return
		}
		to := r.ops
		if !r.runs() {
			to = f.all[0].ops
		}
		go func() {
			defer from.Close()
			conn, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(conn, from) }()
			_, _ = io.Copy(from, conn)
		}()
	}
}

func (r *replica) runs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process != nil
}

// configure writes the configuration, which the replicas read again when it changes.
func (f *fleet) configure(level string) error {
	var named []string
	for _, r := range f.all {
		named = append(named, r.named)
	}
	list, err := json.Marshal(named)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`auth:
  anonymous: true
  cookieKeyFile: %[4]s
  jwt: [{issuer: "https://issuer.test", audiences: [kubecast], publicKeyFile: %[5]s}]
tls: {certFile: %[6]s, keyFile: %[7]s}
authorizer: {mode: policy, policies: ["true"]}
cache: {preload: [configmaps]}
trustedProxies: [127.0.0.1]
requests: {perUser: 0, perSecond: 0}
history: {database: none}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0, total: 0, replicas: %[1]s}
ops: {tokenFile: %[2]s}
drain: %[3]s
drainClosesListener: true
log: {level: %[8]s}
`, list, f.path("token"), f.drain, f.path("cookies"), f.path("issuer.pub"), f.path("tls.crt"), f.path("tls.key"), level)
	return os.WriteFile(filepath.Join(f.dir, "gateway.yaml"), []byte(text), 0o600)
}

// start starts a replica, and returns once it is ready.
func (f *fleet) start(i int) error {
	r := f.all[i]
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(f.binary, "serve", "--config", filepath.Join(f.dir, "gateway.yaml"), "--kubeconfig", f.path("kubeconfig"),
		"--listen", r.public, "--ops-listen", r.ops)
	cmd.Stderr = log
	p, err := process.Start(cmd)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err := p.Ended(); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
		if response, err := http.Get("http://" + r.ops + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("replica %d is not ready", i)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process = p
	return nil
}

// signal sends a replica a signal. One that is to end is waited for.
func (f *fleet) signal(i int, s syscall.Signal) error {
	r := f.all[i]
	r.mu.Lock()
	p := r.process
	if s == syscall.SIGTERM || s == syscall.SIGKILL {
		r.process = nil
	}
	r.mu.Unlock()
	if err := syscall.Kill(p.Pid, s); err != nil {
		return err
	}
	for (s == syscall.SIGTERM || s == syscall.SIGKILL) && p.Ended() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

func (f *fleet) kill() {
	for _, r := range f.all {
		r.mu.Lock()
		if r.process != nil {
			r.process.Kill()
		}
		r.mu.Unlock()
	}
}

// streams is how many streams each replica has that runs, and how far the farthest is from the mean.
func (f *fleet) streams() (counts []int, deviation float64, err error) {
	sum := 0
	for _, r := range f.all {
		if !r.runs() {
			continue
		}
		request, err := http.NewRequest(http.MethodGet, "http://"+r.ops+"/load", nil)
		if err != nil {
			return nil, 0, err
		}
		request.Header.Set("Authorization", "Bearer "+f.ops)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, 0, err
		}
		var load struct{ Streams int }
		err = json.NewDecoder(response.Body).Decode(&load)
		response.Body.Close()
		if err != nil {
			return nil, 0, err
		}
		counts = append(counts, load.Streams)
		sum += load.Streams
	}
	mean := float64(sum) / float64(len(counts))
	for _, n := range counts {
		deviation = max(deviation, float64(n)/mean-1, 1-float64(n)/mean)
	}
	return counts, deviation, nil
}
