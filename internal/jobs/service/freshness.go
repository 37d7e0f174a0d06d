package service

import (
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/recorder"
)

// A log says nothing new while its cluster is away, which is not the same as that nothing happens.
// So readers are told how this replica's own watch of the kind stands, whether it records or
// another replica does.

// source is what a log is recorded from, as far as this replica sees it. Only its tail uses it.
type source struct {
	service *Service
	cluster *cluster.Cluster
	log     string // as recorder.Recorder.Resource

	since time.Time // when told last changed
	live  bool      // what readers are told
	owed  uint64    // the recorder has to have read up to here before what is lost counts as found
}

// upstream looks how the source stands now.
func (s *source) upstream() cache.Upstream {
	r := s.service.recorderOf(s.cluster.Name(), s.log)
	if r == nil { // the kind is not there, or the cluster was not when the gateway began
		away := s.cluster.Away()
		return s.become(cache.Upstream{Live: away == nil, Err: away})
	}
	now := r.Store().Upstream()
	if !now.Live {
		s.owed = 0
		return s.become(now)
	}
	if status := r.Status(); !s.live && !s.since.IsZero() && status.Phase == recorder.Recording {
		if s.owed == 0 {
			s.owed = r.Store().Topic().Head().Version
		}
		if now.Live = status.Version >= s.owed; now.Live {
			s.owed = 0
		}
	}
	return s.become(now)
}

// become dates what readers are told.
func (s *source) become(now cache.Upstream) cache.Upstream {
	if now.Live != s.live || s.since.IsZero() {
		s.live = now.Live
		if s.since = time.Now(); !now.Live && !now.Since.IsZero() {
			s.since = now.Since
		}
	}
	now.Since = s.since
	return now
}

// recorderOf is this replica's recorder of a log; nil if there is none at the moment.
func (a *Service) recorderOf(cluster, log string) *recorder.Recorder {
	for _, r := range a.running() {
		if r.Cluster() == cluster && r.Resource() == log {
			return r
		}
	}
	return nil
}
