package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryOfDocumentsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := func(d *documents) int64 { bytes, _ := d.memory.Held(); return bytes }
		d := newDocuments(nil, nil)
		name := func(i int) documentName { return documentName{path: fmt.Sprintf("/openapi/v3/%d", i)} }
		kept := func(i int) bool { return d.find(name(i)).document != nil }
		for i := range 5 {
			d.keep(name(i), &Document{Body: make([]byte, 20<<20)}, "")
			time.Sleep(time.Second)
			if i == 2 && !kept(0) { // which is used now
				t.Error("60 MiB are not kept")
			}
		}
		if !kept(0) || kept(1) || kept(2) || !kept(3) || !kept(4) || held(&d) > maxDocuments {
			t.Errorf("of 100 MiB are kept %v %v %v %v %v, %d bytes", kept(0), kept(1), kept(2), kept(3), kept(4), held(&d))
		}
		// A document that is kept again takes no more room.
		for range 10 {
			d.keep(name(4), &Document{Body: make([]byte, 20<<20)}, "")
		}
		if held(&d) > maxDocuments || !kept(0) {
			t.Errorf("%d bytes", held(&d))
		}
		time.Sleep(documentUnused + documentUnused/2)
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.kept) != 0 || held(&d) != 0 {
			t.Errorf("%d documents are kept, %d bytes, though nobody asked for long", len(d.kept), held(&d))
		}
	})
}
