package jobs

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Run is the life of one pod of a job. It is never modified.
//
// Its row is the pod's, by namespace and uid. Times are in order: Created ≤ Scheduled ≤ Started ≤
// Ended, as far as they are not 0.
type Run struct {
	ObjectID            // of the pod
	NamespaceUID string // as Job's: which namespace of that name; "" if that is not known. It is learned once, and stays.
	Job          Ref    // the topmost job of which the pod is a part; the zero Ref until that is known
	Version      uint64 // the pod's resourceVersion at the last change
	// EndVersion is the one at which the pod's end was certain: it had ended, or was to be deleted.
	// What a controller wrote before that was not for its end. EndUnseen: nobody saw at which version
	// that came to be. 0: its end is not certain, or that was not kept.
	EndVersion uint64

	// Index says which of the job's pods it is, as its controller numbers them: "3" of an Indexed
	// Job, "worker-0" where there are several kinds of pods; "" if they have no numbers.
	Index string
	Node  string // "" until it is bound to one

	Created   Time
	Scheduled Time // it was bound to its node
	Started   Time // the first of its main containers ran
	Ended     Time // its phase became terminal, or it was gone without; nothing of a run changes after that but what was not known
	Restarts  int64

	// Reason is one word: why it ended, or, of one that has not, why it cannot begin
	// (Unschedulable, ImagePullBackOff, …); "" while nothing is to be said. Ends are among the
	// constants below, or else what the kubelet calls it.
	Reason  string
	Message string // for people; a stranger's text
	// Container is the one that decided the end, with how it ended. Sidecars decide only if no
	// other container did; nil: not known.
	Container string
	ExitCode  *int64
	Signal    *int64

	Requests map[string]string // of the pod, as Kubernetes quantities by name
	Devices  []Device          // that it was given by its resource claims
}

// EndUnseen is the EndVersion of a run of which the end was certain when it was found.
const EndUnseen = math.MaxInt64

// Ref names a job: its kind, as resource.group, and its object, in the namespace of what refers to it.
type Ref struct{ Resource, Name, UID string }

// Device is one that a resource claim was given (resource.k8s.io).
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

// Reasons of ends.
const (
	Completed = "Completed" // its phase is Succeeded
	OOMKilled = "OOMKilled"
	Evicted   = "Evicted"   // by its node, or by the eviction API (a drain)
	Preempted = "Preempted" // for a pod of higher priority
	NodeLost  = "NodeLost"  // its node died, was shut down, or is gone
	Deadline  = "Deadline"  // its own activeDeadlineSeconds
	Errored   = "Error"     // a container failed
	Removed   = "Deleted"   // somebody, or its controller, deleted it before it ended
)

// endSeen reports whether it is known at which version the end was certain.
func (r *Run) endSeen() bool { return r.EndVersion != 0 && r.EndVersion != EndUnseen }

// Terminal reports whether the pod has ended. It holds its node, and what it requested, from Scheduled until then.
func (r *Run) Terminal() bool { return r.Ended != 0 }

// PodSaid is what a pod itself says, as package pods reads it. Times are claims of whoever wrote
// them; 0: nothing is claimed.
type PodSaid struct {
	Index    string
	Node     string // bound to it since Bound; "" as long as only who made the pod says so
	Bound    Time
	Begun    bool // a main container runs, or has run; the first one since Began
	Began    Time
	Deleting bool // somebody asked that it be gone
	Over     bool // its phase is terminal, since Finished
	Finished Time

	Restarts  int64
	Reason    string // as Run's; of a pod that was deleted while it was not Over: why it was
	Message   string
	Container string
	ExitCode  *int64
	Signal    *int64
	Requests  map[string]string
	Devices   []Device
}

// SeenPod is one version of a pod in its place in the log of pods.
type SeenPod struct {
	ObjectID
	PodSaid      // of a pod that is gone: what its last version said, or nothing if nobody kept it
	Job      Ref // as far as it is known
	Version  uint64
	Created  Time
	Deleted  bool // the pod is gone
	Observed Time
	Late     bool // as Seen's
	Replayed bool // as Seen's
}

// NextRun is what seeing a pod does to its run: the run as it is from then on, or nil if it stays
// as it was. The run before is nil if the pod was never seen; of a pod that is gone that says
// nothing (see Next). An ended run has to be kept until its pod is gone, or the next version of the
// pod would begin it again.
//
// What a run says, but for its times, is what the newest version says, and once it has ended, what
// the end said. Older versions change nothing, unless the cluster was restored, which is found
// late: then the run begins anew. So versions that nobody saw are not missed, except for
//
//  1. the moment at which they would have been seen: what they began has the time that the pod claims for it, between what was
//     before and when it was seen,
//  2. whether a container ran before it was restarted twice, and so when the first one ran,
//  3. what was first said of a wait, whose words change for ever, and
//  4. how an end came that was never written: of a pod that is gone, it is what its last version says, and
//  5. the version at which the end was certain, of a pod that was to be deleted.
func NextRun(was *Run, seen SeenPod) *Run {
	switch {
	case was == nil && seen.Deleted:
		return nil
	case was != nil && seen.Version < was.Version && !seen.Deleted:
		if !seen.Late {
			return nil
		}
		restored := &Run{ObjectID: was.ObjectID, NamespaceUID: was.NamespaceUID, Job: was.Job, Created: was.Created}
		was = restored
	}
	next := &Run{Created: seen.Created}
	if was == nil {
		next.ObjectID = ObjectID{UID: strings.Clone(seen.UID), Namespace: strings.Clone(seen.Namespace), Name: strings.Clone(seen.Name)}
	} else {
		*next = *was
	}
	if seen.Job.UID != "" {
		next.Job = Ref{Name(seen.Job.Resource), Name(seen.Job.Name), Name(seen.Job.UID)}
	}
	next.say(seen)
	next.date(seen)
	next.Version = seen.Version
	if certain := seen.Over || seen.Deleting || seen.Deleted; certain && next.EndVersion == 0 && (was == nil || !was.Terminal()) {
		if next.EndVersion = seen.Version; seen.Late {
			next.EndVersion = EndUnseen
		}
	}
	if was != nil {
		same := *next
		same.Version = was.Version
		if reflect.DeepEqual(&same, was) {
			return nil
		}
	}
	return next
}

// say takes over what the pod says.
func (r *Run) say(seen SeenPod) {
	said := seen.PodSaid
	if said.Node != "" {
		r.Node = Name(said.Node)
	}
	if said.Index != "" {
		r.Index = Name(said.Index)
	}
	if len(said.Requests) > 0 {
		r.Requests = requests(said.Requests)
	}
	if !r.Terminal() || len(r.Devices) == 0 { // a claim may go before its pod does, and then be given to another
		r.Devices = devices(r.Devices, said.Devices)
	}
	r.Restarts = max(r.Restarts, said.Restarts)
	if r.ExitCode == nil || !r.Terminal() {
		if !seen.Deleted || said.ExitCode != nil {
			r.Container, r.ExitCode, r.Signal = Name(said.Container), said.ExitCode, said.Signal
		}
	}
	if r.Terminal() {
		return
	}
	if unread := seen.Deleted && reflect.ValueOf(said).IsZero(); !unread {
		// What a pod waits for is said in ever other words, and each would be written: "0/12 nodes", "back-off 20s".
		if why := bounded(said.Reason, maxReason); said.Over || why != r.Reason || r.Message == "" {
			r.Reason, r.Message = why, text(plain(said.Message))
		}
	}
	if seen.Deleted && r.Reason == "" {
		r.Reason = Removed
	}
}

// date dates what has happened by now, and was not known to have. What a live version tells as its
// newest is dated by when it was seen, as all that is told live. What must have been before that,
// or was read after the fact, has the time that the pod claims, no earlier than what was before,
// and no later than when it was seen. What nothing is claimed of has the time that is claimed of what
// came after it: else a pod that is found after its end would have been bound to its node when it was
// found, and have held nothing.
func (r *Run) date(seen SeenPod) {
	said := seen.PodSaid
	observed := max(seen.Observed, r.Created)
	after := seen.Late || seen.Replayed
	least := r.Created
	stage := func(at *Time, reached bool, claimed Time, news bool) {
		if *at == 0 && reached {
			*at = observed
			if (after || !news) && claimed != 0 {
				*at = min(claimed, observed)
			}
			*at = max(*at, least)
		}
		least = max(least, *at)
	}
	over := said.Over || seen.Deleted
	if r.Terminal() {
		// What a later version tells of what was before an end lies before that end.
		observed = r.Ended
		after = true
	}
	began := said.Began
	if began == 0 && over {
		began = said.Finished
	}
	bound := said.Bound
	if bound == 0 && (said.Begun || over) {
		bound = began
	}
	stage(&r.Scheduled, said.Node != "", bound, !said.Begun && !over)
	stage(&r.Started, said.Begun, began, said.Restarts == 0 && !over)
	stage(&r.Ended, over, said.Finished, true)
}

// plain is a stranger's text on one line: what would move a terminal's cursor, or turn what follows around, is a space.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}

// devices are those that are known, and those that were not, as many as are kept. A known list is not changed.
func devices(known, said []Device) []Device {
	for _, d := range said {
		d = Device{Name(d.Driver), Name(d.Pool), Name(d.Device)}
		if len(known) < maxDevices && !slices.Contains(known, d) {
			known = append(known[:len(known):len(known)], d)
		}
	}
	return known
}

// maxDevices bounds the devices that are kept of a run. It is more than a node has.
const maxDevices = 128
