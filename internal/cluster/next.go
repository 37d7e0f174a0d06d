package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// nextWithin is the time of a watch by which the API server says whether anything follows a
	// version. It sends a bookmark two seconds before the end.
	nextWithin = 3 * time.Second
	// nextLate is how much later the answer may come.
	nextLate = 2 * time.Second
)

// next asks the API server for the version of what follows a version first; 0: nothing did when it
// was asked. It may take some seconds.
//
// A bookmark of that version or a later one says that nothing does. Of a kind that the API server
// does not keep in memory there is none; then the end of the watch's time says so.
func (lw *ListWatch) next(ctx context.Context, version uint64) (next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, nextWithin+nextLate)
	defer cancel()
	began := time.Now()
	body, err := lw.briefly(ctx, version)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	for dec := newDecoder(body); ; {
		value, err := dec.ReadValue()
		switch {
		case lasted(began, err):
			return 0, nil
		case err != nil:
			return 0, err
		}
		event := gjson.GetManyBytes(value, "type", "object.metadata.resourceVersion")
		at, err := ParseVersion(event[1].Str)
		switch kind := watch.EventType(event[0].Str); {
		case kind == watch.Error, err != nil:
			return 0, fmt.Errorf("asking what follows version %d of %s: the API server answers %s", version, lw.kind, kind)
		case kind != watch.Bookmark && at <= version:
			// Another gateway tells what may be the rest of the version's revision again, however often it is asked.
		case kind != watch.Bookmark:
			return at, nil
		case at >= version:
			return 0, nil
		}
	}
}

// lasted reports whether a watch that briefly has begun ended with its time.
func lasted(began time.Time, err error) bool {
	return errors.Is(err, io.EOF) && time.Since(began) >= nextWithin-time.Second
}

// briefly begins a watch from a version that ends after nextWithin.
func (lw *ListWatch) briefly(ctx context.Context, version uint64) (io.ReadCloser, error) {
	seconds := int64(nextWithin / time.Second)
	return lw.get(ctx, metav1.ListOptions{
		Watch: true, ResourceVersion: strconv.FormatUint(version, 10), TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
	}, "")
}
