package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/kubecast/kubecast/internal/jobs"
)

// KeptKind says what is kept of a job.
type KeptKind string

// What may be kept of a job that has ended.
const (
	KeptSpec KeptKind = "spec" // the object as it was last seen, without its status, as JSON
	KeptLog  KeptKind = "log"  // the last lines of the container that decided the end
)

// ofPods begins the kinds that are of one pod of a job.
const ofPods = "log/"

// KeptOfPod is what is kept of one pod of a job, by the pod's uid: the last lines that it wrote
// before it was gone. Of one job there are at most MostPodLogs, the newest.
func KeptOfPod(uid string) KeptKind { return KeptKind(ofPods + uid) }

// MostPodLogs is of how many of its pods a job keeps the end of the log, and MostPodUID how long
// their uids may be, in bytes. API servers' have 36.
const MostPodLogs, MostPodUID = 10, 128

// IsOfPod reports whether it is of one pod.
func (k KeptKind) IsOfPod() bool { return strings.HasPrefix(string(k), ofPods) }

// payer is the kind under which the budget of a namespace counts it: one for all pods.
func (k KeptKind) payer() KeptKind {
	if k.IsOfPod() {
		return ofPods
	}
	return k
}

// Kept is something that is kept of a job. There is one of each kind: a job that is opened again
// and ends once more has that of its last end.
type Kept struct {
	UID       string
	Namespace string // of the job; it pays
	Kind      KeptKind
	At        jobs.Time // the job's end to which it belongs
	Data      []byte    // as Pack makes it
	// Over says of what was written that it was not kept, since its namespace has used up its budget.
	Over bool

	replaces int // how many bytes of the same kind the job had before; 0 where that is not known
}

const (
	// mostPacked bounds what is kept, in bytes as they are written to the database. A transaction
	// may have as many of them as it has transitions.
	mostPacked = 128 << 10
	// mostUnpacked bounds the text itself: Kubernetes takes no object of so many bytes.
	mostUnpacked = 8 << 20
)

var packing = func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	if err != nil {
		panic("store: " + err.Error()) // these options are valid, or no test passes
	}
	e.EncodeAll([]byte{0}, nil) // which makes what it works with
	return e
}()

var unpacking = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(mostUnpacked))
	if err != nil {
		panic("store: " + err.Error())
	}
	return d
}()

// Pack makes Data of a text; ok is false if it is too large to be kept.
func Pack(text []byte) (data []byte, ok bool) {
	if len(text) > mostUnpacked {
		return nil, false
	}
	data = packing.EncodeAll(text, nil)
	return data, len(data) <= mostPacked
}

// Unpack is the text of Data. What is read from a database is not to be trusted to be small.
func Unpack(data []byte) ([]byte, error) {
	text, err := unpacking.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("what was kept cannot be read: %w", err)
	}
	return text, nil
}

var keptColumns = strings.Fields("log uid kind at data")

// writeKept writes what is kept of jobs, each once, in place of what was kept of them before.
func (s *Store) writeKept(ctx context.Context, tx *Tx, log Log, all []Kept) error {
	rows := make([][]any, len(all))
	for i, k := range all {
		if k.Over {
			k.Data = notKept
		}
		rows[i] = []any{log.ID, k.UID, string(k.Kind), int64(k.At), k.Data}
	}
	return tx.Insert(ctx, "kept", keptColumns, rows, keptColumns[:3], keptColumns[3:])
}

// Keep keeps something of a job in a transaction of its own, in place of what was kept of that kind
// before, unless that is of a later end. If the job is not there, it keeps nothing: nobody would
// remove it. The error wraps ErrOverBudget if the namespace has used up its budget; what was kept
// of the same end stays then.
func (s *Store) Keep(ctx context.Context, log Log, k Kept) error {
	over := false
	err := s.Transact(ctx, func(tx *Tx) (err error) {
		over, err = s.keep(ctx, tx, log, k)
		return err
	})
	if err == nil && over {
		err = ErrOverBudget
	}
	if err != nil {
		return fmt.Errorf("keep the %s of a job: %w", k.Kind, err)
	}
	return nil
}

func (s *Store) keep(ctx context.Context, tx *Tx, log Log, k Kept) (over bool, err error) {
	var there int
	err = tx.QueryRow(ctx, "SELECT 1 FROM jobs WHERE log = ? AND uid = ?"+tx.Locks(), log.ID, k.UID).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.lockBudget(ctx, tx, log, k); err != nil { // before anything is read that others may change meanwhile
		return false, err
	}
	var at jobs.Time
	err = tx.QueryRow(ctx, "SELECT at, LENGTH(data) FROM kept WHERE log = ? AND uid = ? AND kind = ?", log.ID, k.UID, string(k.Kind)).Scan(&at, &k.replaces)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if at > k.At {
		return false, nil
	}
	all := []Kept{k}
	if err := s.charge(ctx, tx, log, all); err != nil {
		return false, err
	}
	// What was read of a pod before belongs to the same end, though at is when it was read.
	if over = all[0].Over; over && k.replaces > len(notKept) && (at == k.At || k.Kind.IsOfPod()) {
		return true, nil
	}
	if err := s.writeKept(ctx, tx, log, all); err != nil || !k.Kind.IsOfPod() {
		return over, err
	}
	return over, s.dropPodLogs(ctx, tx, log, k.UID)
}

// dropPodLogs removes the oldest ends of logs of a job's pods that are more than a job may have, and before these what
// says that one was not kept. The transaction holds the job's row, so nobody else adds one meanwhile.
func (s *Store) dropPodLogs(ctx context.Context, tx *Tx, log Log, uid string) error {
	var kinds []string // the first are to stay
	if err := tx.Each(ctx, func(scan Scan) error {
		var kind string
		err := scan(&kind)
		kinds = append(kinds, kind)
		return err
	}, "SELECT kind FROM kept WHERE log = ? AND uid = ? AND kind > ? AND kind < ? "+
		"ORDER BY CASE WHEN LENGTH(data) > ? THEN 0 ELSE 1 END, at DESC, kind", log.ID, uid, ofPods, "log0", len(notKept)); err != nil { // 0 is behind /
		return err
	}
	for _, kind := range kinds[min(len(kinds), MostPodLogs):] {
		if _, err := tx.Exec(ctx, "DELETE FROM kept WHERE log = ? AND uid = ? AND kind = ?", log.ID, uid, kind); err != nil {
			return err
		}
	}
	return nil
}

var (
	// ErrNotKept means that nothing of the sort is kept of a job.
	ErrNotKept = errors.New("it is not kept")
	// ErrOverBudget means that it is not kept since the job's namespace had used up its budget.
	ErrOverBudget = errors.New("its namespace had used up its budget")
)

// Kept reads what is kept of a job. An error wraps ErrNotKept or ErrOverBudget, or is the database's.
func (s *Store) Kept(ctx context.Context, log Log, uid string, kind KeptKind) (Kept, error) {
	k := Kept{UID: uid, Kind: kind}
	err := s.QueryRow(ctx, "SELECT at, data FROM kept WHERE log = ? AND uid = ? AND kind = ?", log.ID, uid, string(kind)).Scan(&k.At, &k.Data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Kept{}, ErrNotKept
	case err != nil:
		return Kept{}, fmt.Errorf("read the %s of a job: %w", kind, err)
	case len(k.Data) <= len(notKept):
		return Kept{}, ErrOverBudget
	}
	return k, nil
}

// Keeping says by uid what is kept of jobs, and to which of their ends it belongs.
type Keeping map[string]map[KeptKind]jobs.Time

// Has reports whether something of a kind is kept of a job.
func (k Keeping) Has(uid string, kind KeptKind) bool {
	_, has := k[uid][kind]
	return has
}

// Pods are the uids of those pods of a job of which a log is kept.
func (k Keeping) Pods(uid string) (pods []string) {
	for kind := range k[uid] {
		if kind.IsOfPod() {
			pods = append(pods, strings.TrimPrefix(string(kind), ofPods))
		}
	}
	return pods
}

// Keeps says what is kept of jobs.
func (s *Store) Keeps(ctx context.Context, log Log, uids []string) (Keeping, error) {
	found := Keeping{}
	if err := s.inParts(log.ID, "uid", uids, func(w *where) error {
		w.add("LENGTH(data) > ?", len(notKept))
		return s.Each(ctx, func(scan Scan) error {
			var uid string
			var kind KeptKind
			var at jobs.Time
			err := scan(&uid, &kind, &at)
			if found[uid] == nil {
				found[uid] = map[KeptKind]jobs.Time{}
			}
			found[uid][kind] = at
			return err
		}, "SELECT uid, kind, at FROM kept "+w.String(), w.args...)
	}); err != nil {
		return nil, fmt.Errorf("look for what is kept of jobs: %w", err)
	}
	return found, nil
}
