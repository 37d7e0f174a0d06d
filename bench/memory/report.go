package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// The targets for the heap per pod in Kubecast's cache: as a multiple of the pod's compact JSON, and of the heap per
// pod in the plain informer.
const (
	mostOfJSON     = 1.4
	mostOfInformer = 0.25
)

// figures are the measurements of one cache.
type figures struct {
	Objects int           `json:"objects"`
	Heap    uint64        `json:"heap"`    // bytes that the cache added to the live heap
	RSS     uint64        `json:"rss"`     // bytes resident, once free memory was given back
	PeakRSS uint64        `json:"peakRSS"` // bytes resident at most
	JSON    uint64        `json:"json"`    // bytes of all objects as compact JSON; 0 if the cache has none
	Synced  time.Duration `json:"synced"`  // from start to the whole list
}

func (f figures) perPod() float64 { return float64(f.Heap) / float64(max(f.Objects, 1)) }

type report struct {
	pods               int
	informer, kubecast figures
}

// jsonPerPod is the mean size of a pod's compact JSON, without what the cache leaves out.
func (r report) jsonPerPod() float64 { return float64(r.kubecast.JSON) / float64(max(r.pods, 1)) }

func (r report) ofJSON() float64     { return r.kubecast.perPod() / r.jsonPerPod() }
func (r report) ofInformer() float64 { return r.kubecast.perPod() / r.informer.perPod() }

func (r report) print(out io.Writer) error {
	fmt.Fprintf(out, "%d running pods; as compact JSON without managedFields: %.0f bytes each\n\n", r.pods, r.jsonPerPod())
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "cache\theap per pod\t× JSON\tresident\tat most\tsynced after\t")
	for _, row := range []struct {
		name string
		figures
	}{{"client-go dynamicinformer", r.informer}, {"Kubecast, default indexes", r.kubecast}} {
		fmt.Fprintf(table, "%s\t%.0f B\t%.2f\t%d MiB\t%d MiB\t%s\t\n", row.name, row.perPod(), row.perPod()/r.jsonPerPod(),
			row.RSS>>20, row.PeakRSS>>20, row.Synced.Round(10*time.Millisecond))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nKubecast: %.2f × the compact JSON (at most %.1f: %s), %.3f of the dynamicinformer (at most %.2f: %s)\n",
		r.ofJSON(), mostOfJSON, verdict(r.ofJSON() <= mostOfJSON), r.ofInformer(), mostOfInformer, verdict(r.ofInformer() <= mostOfInformer))
	return err
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "missed"
}
