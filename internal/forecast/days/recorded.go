package days

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// Fields of a job in the Standard Workload Format (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html), from 0. -1 is not known.
const (
	fieldNumber = iota
	fieldSubmitted
	fieldWaited
	fieldLasted
	fieldProcessors
	fieldUser        = 11
	fieldApplication = 13
	fields           = 18
)

// Read reads days that were recorded, in the Standard Workload Format, as the logs of the Parallel Workloads Archive are. Where a log does
// not say when jobs started, as not all do, they start as the queue lets them.
func Read(log io.Reader) (jobs []Job, err error) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == ';' {
			continue
		}
		var f [fields]float64
		for i, text := range strings.Fields(line) {
			if i == fields {
				break
			}
			if _, err := fmt.Sscan(text, &f[i]); err != nil {
				return nil, fmt.Errorf("job %d: field %d is %q", len(jobs)+1, i+1, text)
			}
		}
		if f[fieldProcessors] <= 0 || f[fieldLasted] < 0 {
			continue // it never ran
		}
		j := Job{
			id: fmt.Sprint(f[fieldNumber]), class: fmt.Sprint(f[fieldUser], "/", f[fieldApplication]), size: f[fieldProcessors], submitted: f[fieldSubmitted],
			lasts: f[fieldLasted], started: -1, began: -1, leaves: math.Inf(1),
		}
		if f[fieldWaited] >= 0 {
			j.began = j.submitted + f[fieldWaited]
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
