package eventstream

import (
	"context"
	"net/url"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Source is one thing that a stream tells of: the objects that a path names, a history, logs, or anything
// else that has positions from which it can be read on. A session has one or several sources, and
// does not know what they are.
//
// A session calls the methods one after the other. First come Ready, Epoch and Find, and then Begin, once. Then comes
// Read whenever there may be something, with the others between two Reads. Close comes last, in any case. Question and
// AuditRead may be called at any time.
//
// The session keeps the client's position in each source. A source says it when it begins, with each event, and at the
// end of each Read. It is a stream.Claim whose epoch is left out. A Claim without a position leaves the source out of
// event ids: a client that comes back with such an id begins this source anew.
type Source interface {
	// Name is what event ids call the source; "" only if it is the only one of its stream. Two sources of a stream have
	// different names.
	Name() string
	// Ready waits until the source can be read. An error that is a cache.ErrNotServed or a
	// cache.ErrVersions ends the source: it is opened anew now and then. After any other one it is
	// tried again, from Ready on. If nothing else of the stream can be read, the stream ends as
	// Gone or Unavailable.
	Ready(ctx context.Context) error
	// Epoch is the epoch in which the source's positions count now. Positions of another epoch say
	// nothing. It is asked for again when the source has missed something because another history
	// has begun.
	Epoch(ctx context.Context) (string, error)
	// Find looks up where a client goes on. It may wait, also for the cluster: it holds up no other
	// source of the stream. What it finds counts from Begin on. It is called again if the epoch
	// changed meanwhile.
	Find(ctx context.Context, from From)
	// Begin takes the resume point that Find has found, and what the client was told meanwhile of
	// whether its data is fresh. It returns the client's position. A reset that is not "" is the
	// reason why the client has missed something. What the client then needs to know comes with the
	// first Read.
	Begin(told Freshness) (claim stream.Claim, reset string)
	// Read tells the client a batch of what there is. If the client has no place, the state comes
	// first, and then what follows it. Read may take long, unless Sink.NonBlocking is true: then it
	// returns WouldBlock instead, and is called again where that is fine. It waits for nobody,
	// since the other sources of the stream would have to: see Aside.
	Read(ctx context.Context, to Sink) ReadResult
	// Bookmark tells the client its position, if it has one.
	Bookmark(to Sink)
	// Question is what is asked again and again as long as the stream runs.
	Question() permission.Question
	// Permit says what the caller may see from now on. The next Read tells the client, if that has changed.
	Permit(visible *visibility.Visibility)
	// AuditRead is the source as the audit log names it.
	AuditRead() auditrecord.Read
	// Close ends the reading: nothing wakes the session any more.
	Close()
}

// ToldWhole is a Source that has no positions, since all is told each time. Whoever comes back misses nothing.
type ToldWhole interface{ ToldWhole() }

// PositionBudgeted is a Source with a long position. An event id has room for one; those of one stream share it.
type PositionBudgeted interface {
	// SetPositionBudget says among how many sources the room is shared. It is called before Ready.
	// An error refuses the stream.
	SetPositionBudget(among int) error
}

// From is where the client of a source comes from.
type From struct {
	// Reset is why the client's position counts for nothing (see Source.Begin); "" if it counts, or if there is none.
	Reset string
	// Known says that the client has a position. Named says that this source is part of it. If it
	// is Known but not Named, the client had not been told this source's state to the end, or had
	// not asked for it.
	Known, Named bool
	Claim        stream.Claim // if it is Named
}

// cameFrom is what a client's event id says of a source. On a stream of several, an id that does
// not name the source says nothing of its epoch, either.
func cameFrom(text, name string, several bool) (from From) {
	if text == "" {
		return from
	}
	position, err := stream.ParsePosition(text)
	from.Known = true
	if err != nil {
		from.Reset = ResetUnreadable
		return from
	}
	if from.Claim, from.Named = position.Claims[name]; !from.Named && !several {
		from.Claim.Epoch = position.Epoch
	}
	return from
}

// in is the same for a source whose positions count in an epoch.
func (f From) in(epoch string) From {
	if f.Reset == "" && f.Claim.Epoch != "" && f.Claim.Epoch != epoch {
		f.Reset = ResetEpoch
	}
	return f
}

// ReadResult is what a Read came to.
type ReadResult struct {
	// Claim is the client's position now. It may be further on than that of the last event: behind
	// what was not for this client.
	Claim stream.Claim
	// Due is when Read has to be called at the latest, even if nothing wakes the session; the zero time: never.
	Due time.Time
	// At is when the gateway came to know the oldest of what was told. The zero time does not count in the metrics.
	At time.Time
	// More says that there is more to be read now. If there is not, the source calls Sink.Wake once there is.
	More bool
	// Behind says that what there was when the source began is not all here yet, although there is no More.
	Behind bool
	// Missed is the reason of a reset, or "". The client has missed something, and the source has
	// given up its place, so the next Read tells the state.
	Missed string
	// Outcome says whether the stream goes on. If it is Unavailable, a stream of several goes on
	// without this source, which is begun again from its Claim once that is possible.
	Outcome Outcome
}

// Sink is where a source tells its client: a session.
type Sink interface {
	// Wake makes the session call Read. Any goroutine may call it at any time.
	stream.Waiter
	// Emit collects an event. The claim is the client's position behind it.
	Emit(e Event, claim stream.Claim)
	// Relay sends what was collected, if that is much. A source calls it after each event, or after a few. It stops
	// reading if the outcome is not GoOn.
	Relay() Outcome
	// Step counts work, by about how many bytes are looked at. If it returns false, Read returns with what it has, and
	// with More.
	Step(bytes int) bool
	// NonBlocking reports whether Read must not wait.
	NonBlocking() bool
	// Outgrowing says when what is being told is too old to be kept for a slow client; nil: it never is.
	Outgrowing(outgrown func() bool)
	// Spawn has a goroutine do something until the server ends, or it is cancelled; see Aside.
	Spawn(do func(ctx context.Context)) (cancel context.CancelFunc)
}

// BatchSize is how many events of a kind's objects one Read tells at most.
const BatchSize = 128

// Opener opens a source for a caller, who may see something of it. Errors are those of requests (see reply.To); those
// that heal by retrying (429 and 503) are told as Limit and Unavailable.
type Opener func(ctx context.Context, id auth.Identity) (Source, error)

// Parser reads what is asked of a source: its path, and its own query, without parameters that concern the
// connection. On a stream of several, name is what the client calls it; else it is "". Errors are those of requests.
type Parser func(name, path string, query url.Values) (Opener, error)
