package stream

import (
	"errors"
	"testing"
)

func ahead(t *testing.T, topic *Topic[*item], known Known, namespaces NamespaceSet) *Cursor[*item] {
	t.Helper()
	if _, err := topic.Resume(known, namespaces); !errors.Is(err, ErrAhead) {
		t.Fatalf("Resume: %v, want ErrAhead", err)
	}
	cursor, err := topic.Ahead(known, namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return cursor
}

// A client may come from a replica that has seen more, be it only a bookmark.
func TestCursorAheadTellsNothingTwiceAndNothingTooFew(t *testing.T) {
	topic := NewTopic[*item](Options{Events: 16, Bytes: 1 << 20})
	topic.Begin(10)
	cursor := ahead(t, topic, UpTo(15), AllNamespaces())
	for version := uint64(12); version <= 18; version += 2 {
		topic.Append(version, Change[*item]{Type: Added, Object: &item{version: version}})
	}
	batch, position, err := cursor.Next(make([]*Event[*item], 0, 8), nil)
	if err != nil || position != 18 || len(batch) != 2 || batch[0].Pos != 16 || batch[1].Pos != 18 {
		t.Fatalf("told %d events up to %d (%v), want those of 16 and 18", len(batch), position, err)
	}
}

func TestCursorAheadKeepsItsPositionUntilTheTopicPassesIt(t *testing.T) {
	topic := NewTopic[*item](Options{Events: 16, Bytes: 1 << 20})
	topic.Begin(10)
	cursor := ahead(t, topic, UpTo(15), AllNamespaces())
	topic.Append(12, Change[*item]{Type: Added, Object: &item{version: 12}})
	if batch, position, err := cursor.Next(make([]*Event[*item], 0, 8), nil); err != nil || position != 15 || len(batch) != 0 {
		t.Fatalf("told %d events up to %d (%v), want none up to 15", len(batch), position, err)
	}
}

// While the API server is asked whether a position ahead is a real one, the topic may move past
// that position.
func TestTopicThatOvertakesAPositionAheadLosesNothing(t *testing.T) {
	topic := NewTopic[*item](Options{Events: 4, Bytes: 1 << 20})
	topic.Begin(10)
	if _, err := topic.Resume(UpTo(12), AllNamespaces()); !errors.Is(err, ErrAhead) {
		t.Fatal(err)
	}
	for version := uint64(11); version <= 14; version++ {
		topic.Append(version, Change[*item]{Type: Added, Object: &item{version: version}})
	}
	cursor, err := topic.Ahead(UpTo(12), AllNamespaces())
	if err != nil {
		t.Fatal(err)
	}
	batch, position, err := cursor.Next(make([]*Event[*item], 0, 8), nil)
	if err != nil || position != 14 || len(batch) != 2 || batch[0].Pos != 13 {
		t.Fatalf("told %d events up to %d (%v), want those of 13 and 14", len(batch), position, err)
	}
	for version := uint64(15); version <= 18; version++ {
		topic.Append(version, Change[*item]{Type: Added, Object: &item{version: version}})
	}
	if _, err := topic.Ahead(UpTo(12), AllNamespaces()); !errors.Is(err, ErrExpired) {
		t.Errorf("when what follows has been evicted: %v, want ErrExpired", err)
	}
}

// What another replica told the client may have gone again within the gap, unseen by this replica.
func TestCursorAheadExpiresWhenARelistLeapsOverIt(t *testing.T) {
	for _, changes := range [][]Change[*item]{nil, {{Type: Added, Object: &item{version: 14}}}} {
		topic := NewTopic[*item](Options{Events: 16, Bytes: 1 << 20})
		topic.Begin(10)
		cursor := ahead(t, topic, UpTo(15), AllNamespaces())
		topic.AppendBurst(20, changes)
		if _, _, err := cursor.Next(make([]*Event[*item], 0, 8), nil); !errors.Is(err, ErrExpired) {
			t.Errorf("with %d changes: %v, want ErrExpired", len(changes), err)
		}
	}
}

func TestCursorAheadFillsItsBatchLikeAnyOther(t *testing.T) {
	topic := NewTopic[*item](Options{Events: 16, Bytes: 1 << 20})
	topic.Begin(10)
	cursor := ahead(t, topic, UpTo(13), AllNamespaces())
	for version := uint64(11); version <= 18; version++ {
		topic.Append(version, Change[*item]{Type: Added, Object: &item{version: version}})
	}
	for want := uint64(14); want <= 18; want += 2 {
		batch, position, err := cursor.Next(make([]*Event[*item], 0, 2), nil)
		if err != nil || batch[0].Pos != want || len(batch) != int(min(2, 19-want)) || position != min(want+1, 18) {
			t.Fatalf("told %d events up to %d (%v), want those from %d on", len(batch), position, err, want)
		}
	}
}
