package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// linesPerSecond is the annotation of a pod that says how much its containers write; usually two lines a second.
const linesPerSecond = "devcluster.kubecast.io/log-lines-per-second"

// trainingOutput is what a container writes. Line n is always the same, and always of the same time.
type trainingOutput struct {
	started  time.Time
	every    time.Duration
	workload string
	pod      string
	image    string
	seed     uint64
	written  int // lines
}

func newTrainingOutput(pod *corev1.Pod, name logName, started time.Time) *trainingOutput {
	hash := fnv.New64a()
	fmt.Fprint(hash, name) // a hash never fails
	o := &trainingOutput{started: started, every: time.Second / 2, workload: pod.Labels["app.kubernetes.io/name"], pod: pod.Name, seed: hash.Sum64()}
	if o.workload == "" {
		o.workload = name.container
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == name.container {
			o.image = c.Image
		}
	}
	if rate, err := strconv.ParseFloat(pod.Annotations[linesPerSecond], 64); err == nil && rate > 0.001 && rate <= 1e6 {
		o.every = time.Duration(float64(time.Second) / rate)
	}
	return o
}

// at is the time of line n.
func (o *trainingOutput) at(n int) time.Time { return o.started.Add(time.Duration(n) * o.every) }

// next is when there is another line.
func (o *trainingOutput) next() time.Time { return o.at(o.written) }

// until returns the lines of a container runtime's log that are to be written at a time, and if the
// container has ended, its last words.
func (o *trainingOutput) until(now time.Time, ended *corev1.ContainerStateTerminated) []byte {
	var log bytes.Buffer
	write := func(at time.Time, stream, text string) {
		fmt.Fprintf(&log, "%s %s F %s\n", at.UTC().Format(time.RFC3339Nano), stream, text)
	}
	if ended != nil && !ended.FinishedAt.IsZero() && ended.FinishedAt.Time.Before(now) {
		now = ended.FinishedAt.Time
	}
	for ; !o.at(o.written).After(now); o.written++ {
		write(o.at(o.written), "stdout", o.line(o.written))
	}
	if ended != nil {
		at := o.at(max(o.written-1, 0))
		for i, text := range o.lastWords(ended) {
			stream := "stdout"
			if ended.ExitCode != 0 {
				stream = "stderr"
			}
			write(at.Add(time.Duration(i+1)*time.Microsecond), stream, text)
		}
	}
	return log.Bytes()
}

const (
	stepsPerEpoch = 12 // of which each is a line
	epochs        = 40
)

// line is what is written as line n.
func (o *trainingOutput) line(n int) string {
	said := func(level, format string, args ...any) string {
		return fmt.Sprintf("%s %-5s %s: ", o.at(n).UTC().Format("15:04:05.000"), level, o.workload) + fmt.Sprintf(format, args...)
	}
	switch n {
	case 0:
		return said("INFO", "%s starts on %s", o.image, o.pod)
	case 1:
		return said("INFO", "seed %d, backend nccl, 1 device of 80 GiB", o.seed%1000)
	case 2:
		return said("INFO", "%d samples in %d shards", 40_000+o.noise(2, 90_000), 64+o.noise(3, 400))
	}
	epoch, step := (n-3)/stepsPerEpoch%epochs+1, (n-3)%stepsPerEpoch
	loss := 0.3 + 2.4*math.Exp(-float64(n)/90) + float64(o.noise(n, 100))/1000
	switch {
	case step == stepsPerEpoch-1:
		return said("INFO", "epoch %d/%d done: val_loss %.4f, val_accuracy %.3f; checkpoint s3://checkpoints/%s/epoch-%03d", epoch, epochs, loss+0.05, 1-loss/3, o.workload, epoch)
	case o.noise(n, 60) == 0:
		return said("WARN", "the data loader's worker %d is slow: %d ms", o.noise(n+1, 8), 900+o.noise(n, 3000))
	}
	return said("INFO", "epoch %d/%d step %d/%d loss %.4f lr %.2e %d samples/s", epoch, epochs, step*50, stepsPerEpoch*50, loss, 3e-4*math.Exp(-float64(n)/500), 700+o.noise(n, 200))
}

// noise is a number below a bound, the same for the same line.
func (o *trainingOutput) noise(n int, below uint64) uint64 {
	x := (o.seed ^ uint64(n)) * 0x9e3779b97f4a7c15
	x ^= x >> 32
	return x * 0xd6e8feb86659fd93 >> 33 % below
}

// lastWords are what a container writes at its end.
func (o *trainingOutput) lastWords(ended *corev1.ContainerStateTerminated) []string {
	switch {
	case ended.ExitCode == 0:
		return []string{fmt.Sprintf("%s: training is complete, model written to s3://models/%s", o.workload, o.pod)}
	case ended.ExitCode == 137:
		return nil // a process that is killed says nothing
	}
	return []string{
		"Traceback (most recent call last):",
		`  File "/opt/trainer/train.py", line 214, in <module>`,
		"    main()",
		`  File "/opt/trainer/train.py", line 187, in main`,
		"    loss = trainer.step(next(batches))",
		`  File "/opt/trainer/loop.py", line 91, in step`,
		"    raise FloatingPointError(f\"loss is {loss} at step {self.step}\")",
		fmt.Sprintf("FloatingPointError: loss is nan at step %d", o.written*50),
	}
}
