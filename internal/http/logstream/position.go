package logstream

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/stream"
)

// containerPosition is how much a client has been told of a container: of one of its runs, and all
// of those before it.
type containerPosition struct {
	restart int
	ended   bool               // it was told the end of the run
	told    *logs.LinePosition // nil: that the run has begun, and no more
}

// position is what an event id says of a stream of logs: a letter p, then a digit of flags, then
// for each container its key, twice the restart, and one more if its end was told, and the
// logs.LinePosition, as numbers to the base 36 (seconds before 1970 as odd ones). All are separated
// by hyphens.
type position struct {
	synced, over bool
	containers   map[string]containerPosition // by the container's key
}

const (
	flagSynced = 1 // the client was told what there was
	flagOver   = 2 // and asked for no more
)

// keyOf names a container in event ids, which must be short. Forty bits are enough for the few of one stream.
func keyOf(uid, container string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uid + "/" + container)) // a hash never fails
	return strconv.FormatUint(hash.Sum64()&(1<<40-1), 36)
}

// text is the position in an event id.
func (p containerPosition) text(key string) string {
	restart := uint64(p.restart) << 1
	if p.ended {
		restart |= 1
	}
	var told logs.LinePosition
	if p.told != nil {
		told = *p.told
	}
	text := "-" + key
	for _, n := range []uint64{restart, uint64(told.Since<<1) ^ uint64(told.Since>>63), told.Count, told.Sum} {
		text += "-" + strconv.FormatUint(n, 36)
	}
	return text
}

// header is how a position begins.
func header(synced, over bool) string {
	flags := 0
	if synced {
		flags |= flagSynced
	}
	if over {
		flags |= flagOver
	}
	return "p" + strconv.Itoa(flags)
}

// IsOver reports whether an event id of a single stream of logs says that there is nothing to come back for.
func IsOver(id string) bool {
	p, err := stream.ParsePosition(id)
	if err != nil {
		return false
	}
	known, ok := parsePosition(p.Claims["l"].Own)
	return ok && known.over
}

// parsePosition reads what header and text write.
func parsePosition(text string) (p position, ok bool) {
	parts := strings.Split(strings.TrimPrefix(text, "p"), "-")
	flags, err := strconv.ParseUint(parts[0], 10, 2)
	if err != nil || len(parts)%5 != 1 || len(parts) > 5*maxContainers+1 {
		return p, false
	}
	p = position{synced: flags&flagSynced != 0, over: flags&flagOver != 0, containers: map[string]containerPosition{}}
	for entry := range slices.Chunk(parts[1:], 5) {
		var numbers [4]uint64
		for i, text := range entry[1:] {
			if numbers[i], err = strconv.ParseUint(text, 36, 64); err != nil {
				return p, false
			}
		}
		at := containerPosition{restart: int(numbers[0] >> 1 & (1<<31 - 1)), ended: numbers[0]&1 != 0}
		if since := numbers[1]; since != 0 || numbers[2] != 0 {
			at.told = &logs.LinePosition{Since: int64(since>>1) ^ -int64(since&1), Count: numbers[2], Sum: numbers[3]}
		}
		p.containers[entry[0]] = at
	}
	return p, true
}
