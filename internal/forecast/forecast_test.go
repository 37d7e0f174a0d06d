package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Where there is too little to go by, nothing is said; and of a job that never fits, never.
func TestNothingIsSaidWhereThereIsTooLittle(t *testing.T) {
	q := NewQueue(1)
	s := &State{Room: 2, Running: []Running{{Class: "a", Size: 1}}, Waiting: []Waiting{{ID: "fits", Class: "a", Size: 1}, {ID: "huge", Class: "a", Size: 3}}}
	for n := range fewest + 1 {
		for i, interval := range q.Starts(s, 0) {
			if interval != nil {
				t.Fatalf("after %d starts, something is said of %s: %v", n, s.Waiting[i].ID, interval)
			}
		}
		q.Ended("a", time.Minute)
		id := fmt.Sprint(n)
		q.Starts(&State{Room: 1, Running: s.Running, Waiting: []Waiting{{ID: id, Class: "a", Size: 1}}}, 0)
		if n > 0 { // of the first, the plays knew nothing
			q.Started(id, time.Minute)
		}
	}
	said := q.Starts(s, 0)
	if said[0] == nil || said[0].From > said[0].To || said[1] != nil {
		t.Errorf("%v", said)
	}
}

// What jobs are forgotten, and who asks how often, changes no memory for good.
func TestAQueueKeepsNoMoreThanItNeeds(t *testing.T) {
	q := NewQueue(1)
	for i := range 3 * mostClasses {
		q.Ended(fmt.Sprint(i), time.Minute)
		id := fmt.Sprint(i % 5000)
		if i%8 == 0 {
			q.Starts(&State{Room: 1, Running: []Running{{Size: 1}}, Waiting: []Waiting{{ID: id, Class: id, Size: 1}}}, 0)
		}
		if i%16 == 0 {
			q.Started(id, time.Minute)
		} else {
			q.Left(id)
		}
	}
	if len(q.lasts.classes) > mostClasses || len(q.lasts.all.sorted) > keptOfAll || len(q.said) > 0 || len(q.all.sorted) > keptErrors {
		t.Errorf("%d classes, %d run times, %d forecasts, %d errors", len(q.lasts.classes), len(q.lasts.all.sorted), len(q.said), len(q.all.sorted))
	}
}

// Nobody says what became of some jobs: they are forgotten.
func TestJobsThatNobodyHearsOfAreForgotten(t *testing.T) {
	q := NewQueue(1)
	q.Ended("a", time.Minute)
	for i := range 2000 {
		q.Starts(&State{Room: 1, Running: []Running{{Size: 1}}, Waiting: []Waiting{{ID: fmt.Sprint(i), Class: "a", Size: 1}}}, time.Duration(i)*time.Minute)
	}
	if len(q.said) > 100 {
		t.Errorf("%d are remembered", len(q.said))
	}
}

func BenchmarkAThousandWait(b *testing.B) {
	q := NewQueue(1)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		q.Ended(fmt.Sprint(i%40), seconds(600*math.Exp(random.NormFloat64())))
	}
	s := &State{Room: 500}
	for i := range 1000 {
		s.Waiting = append(s.Waiting, Waiting{fmt.Sprint(i), fmt.Sprint(i % 40), float64(1 + i%8)})
		if i < 150 {
			s.Running = append(s.Running, Running{fmt.Sprint(i % 40), 3, time.Minute})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Starts(s, 0)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
