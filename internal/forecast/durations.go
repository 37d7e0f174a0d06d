package forecast

import (
	"math/rand/v2"
	"slices"
)

const (
	// keptOfClass and keptOfAll are how many of the last run times are kept, of a class and of the whole queue.
	keptOfClass, keptOfAll = 64, 512
	// fewOfClass is how many a class must have to be gone by. Less are completed by the queue's.
	fewOfClass = 8
	// mostClasses bounds the classes that are known. The one that was heard of longest ago is forgotten.
	mostClasses = 4096
)

// durations are for how long jobs ran, in seconds.
type durations struct {
	all     sample
	classes map[string]*sample
	heard   uint64
}

// sample are the last values, in their order, too.
type sample struct {
	ring   []float64
	next   int
	sorted []float64
	heard  uint64 // when there was one last
}

func (s *sample) add(value float64, most int) {
	if len(s.ring) < most {
		s.ring = append(s.ring, value)
	} else {
		gone := s.ring[s.next]
		s.ring[s.next] = value
		s.next = (s.next + 1) % most
		i, _ := slices.BinarySearch(s.sorted, gone)
		s.sorted = slices.Delete(s.sorted, i, i+1)
	}
	i, _ := slices.BinarySearch(s.sorted, value)
	s.sorted = slices.Insert(s.sorted, i, value)
}

func (d *durations) add(class string, seconds float64) {
	d.heard++
	d.all.add(seconds, keptOfAll)
	of := d.classes[class]
	if of == nil {
		if d.classes == nil {
			d.classes = map[string]*sample{}
		}
		if len(d.classes) >= mostClasses {
			d.forgetOne()
		}
		of = &sample{}
		d.classes[class] = of
	}
	of.heard = d.heard
	of.add(seconds, keptOfClass)
}

func (d *durations) forgetOne() {
	oldest := ""
	for name, of := range d.classes {
		if oldest == "" || of.heard < d.classes[oldest].heard {
			oldest = name
		}
	}
	delete(d.classes, oldest)
}

// rest is for how long a job of a class goes on that has run for so long: one of those that ran
// longer, at random.
func (d *durations) rest(class string, ran float64, random *rand.Rand) float64 {
	if of := d.classes[class]; of != nil && random.IntN(len(of.ring)+fewOfClass) < len(of.ring) {
		if longer := of.longer(ran); len(longer) > 0 {
			return longer[random.IntN(len(longer))] - ran
		}
	}
	if longer := d.all.longer(ran); len(longer) > 0 {
		return longer[random.IntN(len(longer))] - ran
	}
	// None has run for so long. How long something goes on that has lasted long is as open as how long it has lasted.
	return ran * (0.05 + random.ExpFloat64())
}

// longer are the values above one.
func (s *sample) longer(than float64) []float64 {
	i, _ := slices.BinarySearch(s.sorted, than)
	for i < len(s.sorted) && s.sorted[i] <= than {
		i++
	}
	return s.sorted[i:]
}
