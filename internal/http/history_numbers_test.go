package http

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// world is a history in which a caller sees some jobs, and so many transitions of others happen
// whenever hide is called.
type world struct {
	*chronicle
	hidden int
	shown  int
	told   strings.Builder // what the caller was told
}

func newWorld(t *testing.T, hidden int) *world {
	w := &world{chronicle: newChronicle(t), hidden: hidden}
	w.api.Put("namespaces", "a")
	w.api.Put("namespaces", "b")
	w.at = jobs.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
	return w
}

// show writes a job that the caller may see, which is the same in all worlds.
func (w *world) show() {
	w.t.Helper()
	w.shown++
	w.at += 60_000
	batch := store.Batch{To: uint64(w.shown * 1000)}
	var job *jobs.Job
	for i, state := range []jobs.State{jobs.Running, jobs.Succeeded} {
		next, transition := jobs.Next(job, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: fmt.Sprint("uid-", w.shown), Namespace: "a", Name: "j"}, Version: batch.To + uint64(i), Created: w.at, Observed: w.at + jobs.Time(i*1000),
			Said: jobs.Said{State: state, Owner: "bob"},
		})
		next.NamespaceUID, transition.NamespaceUID = w.api.UID("namespaces", "a"), w.api.UID("namespaces", "a")
		job, batch.Transitions = next, append(batch.Transitions, transition)
	}
	batch.Jobs = []*jobs.Job{job}
	w.write(batch)
}

// hide writes what the caller may not see.
func (w *world) hide() {
	w.t.Helper()
	batch := store.Batch{To: w.log.Version + 1}
	for i := range w.hidden {
		job, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: fmt.Sprint("hidden-", w.log.Seq, "-", i), Namespace: "b", Name: "j"}, Version: batch.To, Created: w.at, Observed: w.at,
			Said: jobs.Said{State: jobs.Running, Owner: "bob"},
		})
		job.NamespaceUID, transition.NamespaceUID = w.api.UID("namespaces", "b"), w.api.UID("namespaces", "b")
		batch.Jobs, batch.Transitions = append(batch.Jobs, job), append(batch.Transitions, transition)
	}
	w.write(batch)
}

func (w *world) write(batch store.Batch) {
	w.t.Helper()
	var err error
	if w.log, err = w.db.Write(w.t.Context(), w.log, batch); err != nil {
		w.t.Fatal(err)
	}
}

const dan = "Authorization: Bearer dan"

// asks gets something, and follows its pages.
func (w *world) asks(path string) (token string) {
	w.t.Helper()
	began := time.Now()
	for next, first := "", true; first || next != ""; first = false {
		if time.Since(began) > 5*time.Minute {
			w.t.Fatalf("%s: its pages have no end", path)
		}
		to := path
		if next != "" {
			to += "&continue=" + next
		}
		a := w.patiently(to, dan)
		next = w.note(to, a)
		if first {
			token = next
		}
	}
	return token
}

// note notes an answer, but what is random or a time in each.
func (w *world) note(path string, a answer) (next string) {
	w.t.Helper()
	path, _, _ = strings.Cut(path, "&continue=")
	var page struct{ Continue string }
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		w.t.Fatal(err)
	}
	body := a.body
	if page.Continue != "" {
		raw, err := base64.RawURLEncoding.DecodeString(page.Continue)
		if err != nil {
			w.t.Fatal(err)
		}
		body = strings.Replace(body, page.Continue, string(raw), 1)
	}
	for _, random := range []string{"Date", "X-Request-Id"} {
		a.header.Del(random)
	}
	fmt.Fprintln(&w.told, path, a.code, a.header, body)
	return page.Continue
}

// reads reads so many events, but bookmarks that come because of the time, and returns the id of each.
func (w *world) reads(s *events, n int) (ids []string) {
	w.t.Helper()
	for range n {
		ids = append(ids, w.hears(s.next()))
	}
	return ids
}

// hears notes an event but its id's epoch.
func (w *world) hears(f frame) (id string) {
	_, place, _ := strings.Cut(f.id, ".")
	fmt.Fprintln(&w.told, f.event, place, f.data)
	return f.id
}

var (
	sealedNumber   = regexp.MustCompile(`("seq":"|"r":"|-p)([0-9a-v]{26,58})("|-s)`)
	unsealedNumber = regexp.MustCompile(`"seq":"?[0-9]{1,20}[",}]|"s":|h-[0-9]|past-[0-9]`)
)

// masked is what the caller was told with the texts of sealed numbers replaced: rows by when they
// came first, and positions, of which no two must be alike.
func (w *world) masked() string {
	w.t.Helper()
	told := strings.ReplaceAll(w.told.String(), w.api.UID("namespaces", "a"), "HOME")
	if plain := unsealedNumber.FindString(told); plain != "" {
		w.t.Errorf("the caller is told %s", plain)
	}
	rows, positions := map[string]int{}, map[string]int{}
	return sealedNumber.ReplaceAllStringFunc(told, func(found string) string {
		m := sealedNumber.FindStringSubmatch(found)
		text := "POSITION"
		switch len(m[2]) {
		case seal.RowLength:
			if rows[m[2]] == 0 {
				rows[m[2]] = len(rows) + 1
			}
			text = fmt.Sprint("ROW", rows[m[2]])
		case seal.PositionLength:
			if positions[m[2]] == 0 {
				positions[m[2]] = len(positions) + 1
			}
			text = fmt.Sprint("POSITION", positions[m[2]])
		default:
			w.t.Errorf("%s is no number", found)
		}
		return m[1] + text + m[3]
	})
}

// beside hides something while a stream tells of another source, too, whose events have the
// position of both: that of the history stays as it was told.
func (w *world) beside(s *events) {
	w.t.Helper()
	everything := w.stream(allJobs + "?limit=0")
	defer everything.close()
	everything.expect("synced")
	_, last, _ := strings.Cut(s.lastID, ".past-")
	for i := range 3 {
		w.hide()
		for range w.hidden { // then the gateway knows of it
			everything.expect("transition")
		}
		w.api.Put("jobs", fmt.Sprint("a/beside-", i))
		for end := time.Now().Add(w.patience); ; {
			f := s.event()
			_, place, _ := strings.Cut(f.id, ".past-")
			if f.event == "past.bookmark" {
				last = place
			}
			if place != last || place == "" {
				w.t.Errorf("the history is at %q without a word, not at %q: %s", place, last, f.raw)
			}
			if f.event == "jobs.added" {
				break
			}
			if time.Now().After(end) { // bookmarks go on for ever
				w.t.Fatalf("never told that beside-%d was added; last %s", i, f.raw)
			}
		}
	}
}

// life is all that the caller asks for in a world.
func (w *world) life() {
	w.t.Helper()
	w.show()
	w.hide()
	w.show()
	w.show()
	w.hide()
	home := "/history/apis/batch/v1/namespaces/a/jobs"
	for _, path := range []string{allJobs, home, home + "/j"} {
		w.asks(path + "?limit=2")
		w.asks(path + "?view=transitions&limit=2")
		w.asks(path + "?view=transitions&limit=3&state=Succeeded")
		w.asks(path + "?view=usage&until=2026-01-02T00:00:00Z")
	}
	var all []string
	for _, path := range []string{allJobs, home, "/stream?jobs=/apis/batch/v1/namespaces/a/jobs&past=" + escape(allJobs)} {
		s := w.stream(path, dan)
		switch {
		case path == allJobs:
			all = append(all, w.reads(s, 1+2*w.shown+1)...) // narrowed, transitions, synced
		case path == home:
			all = append(all, w.reads(s, 2*w.shown+1)...)
		default:
			for synced := 0; synced < 2; { // in whichever order the two begin
				if strings.HasSuffix(s.next().event, ".synced") {
					synced++
				}
			}
		}
		w.hide()
		w.show()
		w.reads(s, 2)
		if path != allJobs && path != home {
			w.beside(s)
			s.close()
			continue
		}
		s.close()
		w.hide()
		s = w.stream(path, dan, "Last-Event-ID: "+s.lastID)
		if path == allJobs {
			w.reads(s, 1)
		}
		all = append(all, w.hears(s.until("bookmark")))
		w.hide()
		w.show()
		w.hide()
		w.reads(s, 2)
		w.access.permit("dan", auth.Scope{})
		w.hide()
		all = append(all, w.reads(s, 1)...) // why it ends
		w.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
		s.close()
	}
	for _, id := range all {
		if _, place, _ := strings.Cut(id, "."); place == "" {
			continue
		}
		s := w.stream(allJobs+"?limit=1", dan, "Last-Event-ID: "+id)
		w.reads(s, 2)
		s.close()
	}
}

// TestHiddenTransitionsAreCountedNowhere: what a caller is told who may see some namespaces is the
// same whether nothing or much happens in others, byte for byte, but for texts that are random.
func TestHiddenTransitionsAreCountedNowhere(t *testing.T) {
	quiet, busy := newWorld(t, 0), newWorld(t, 500)
	quiet.life()
	busy.life()
	want, got := strings.Split(quiet.masked(), "\n"), strings.Split(busy.masked(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d differs:\n%s\n%s", i, strings.Join(want[min(i, len(want)):min(i+3, len(want))], "\n"), strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"))
		}
	}
	if n := len(want); n < 100 {
		t.Errorf("only %d lines were compared", n)
	}
}

// TestPlainNumbersAreNoOracle: a caller who may not see all learns from no number that they make up how many there are.
func TestPlainNumbersAreNoOracle(t *testing.T) {
	answers := map[string]string{}
	for _, hidden := range []int{0, 500} {
		w := newWorld(t, hidden)
		w.show()
		w.hide()
		first := w.stream(allJobs, dan)
		id := first.until("synced").id
		epoch, rest, _ := strings.Cut(id, ".")
		visibility := rest[strings.LastIndex(rest, "-"):]
		token := w.asks(allJobs + "?view=transitions&limit=1")
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			t.Fatal(err)
		}
		row := sealedNumber.FindStringSubmatch(string(raw))[2]
		forged := "00000" + row[5:]
		w.told.Reset()
		for _, place := range []string{
			"h-1" + visibility, "h-2" + visibility, "h-100" + visibility, "h-502" + visibility, "h-503" + visibility, "h-9999" + visibility, "h-p0", "h-p0" + visibility, "h-1", "h-9999",
			"h-p" + forged + visibility, "h-p" + strings.Repeat("0", seal.RowLength) + visibility, "h-p" + strings.Repeat("0", seal.PositionLength) + visibility, "h-p" + row + row + visibility,
		} {
			s := w.stream(allJobs+"?limit=0", dan, "Last-Event-ID: "+epoch+"."+place)
			if f := s.event(); f.event != "reset" {
				t.Errorf("%s: %s", place, f.raw)
			} else {
				fmt.Fprintln(&w.told, f.data)
			}
			w.reads(s, 2)
			s.close()
		}
		for _, at := range []string{`"s":1`, `"s":2`, `"s":3`, `"s":502`, `"s":503`, `"s":9999`, `"r":"` + forged + `"`, `"r":"` + strings.Repeat("0", seal.PositionLength) + `"`, `"r":"x"`} {
			made := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), `"r":"`+row+`"`, at, 1)))
			a := w.get(allJobs+"?view=transitions&limit=1&continue="+made, dan)
			if a.code != http.StatusGone {
				t.Errorf("%s: %d %s", at, a.code, a.body)
			}
			w.note("", a)
		}
		if told := w.masked(); answers["told"] == "" {
			answers["told"] = told
		} else if told != answers["told"] {
			t.Errorf("they are told\n%s\nand with others' transitions\n%s", answers["told"], told)
		}
	}
}

// TestNumbersAreToldToWhomeverSeesAll, in both forms of place, also while a caller's permissions go
// from the one to the other.
func TestNumbersAreToldToWhomeverSeesAll(t *testing.T) {
	w := newWorld(t, 3)
	w.show()
	w.hide()
	s := w.stream(allJobs, dan)
	s.expect("narrowed", "transition", "transition", "synced")
	sealedID := s.lastID
	w.access.permit("dan", auth.Scope{All: true})
	if f := s.expect("widened"); !strings.HasSuffix(f.id, ".h-5") {
		t.Errorf("%s", f.raw)
	}
	w.hide()
	if seqs, ids := s.numbers(3); !slices.Equal(seqs, count(6, 8)) || !strings.HasSuffix(ids[2], ".h-8") {
		t.Errorf("%v %v", seqs, ids)
	}
	plainID := s.lastID
	w.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
	if f := s.expect("narrowed"); !strings.Contains(f.id, ".h-p") {
		t.Errorf("%s", f.raw)
	}
	w.stream(allJobs, dan, "Last-Event-ID: "+plainID).expect("reset epoch")
	_, token := itemsOf(t, w.get(allJobs+"?view=transitions&limit=1", dan))
	all := w.stream(allJobs + "?limit=0") // alice and dan follow the same end of the log
	all.expect("synced")
	w.show()
	plain, _ := all.numbers(2)
	if seqs, _ := s.numbers(2); !slices.Equal(plain, count(9, 10)) || len(seqs[0]) != seal.RowLength || len(seqs[1]) != seal.RowLength {
		t.Errorf("%v beside %v", seqs, plain)
	}
	w.access.permit("dan", auth.Scope{All: true})
	s.expect("widened")
	w.stream(allJobs, dan, "Last-Event-ID: "+sealedID).expect("reset epoch", "widened")
	w.tells(allJobs+"?view=transitions&limit=10&continue="+token, "dan", "j:→Running")
	// Whoever may get one name in all namespaces does not see all of the kind.
	w.access.permit("named", auth.Scope{Names: map[string][]string{"": {"j"}}})
	if a := w.get("/history/apis/batch/v1/namespaces/a/jobs/j?view=transitions", "Authorization: Bearer named"); a.code != 200 || unsealedNumber.MatchString(a.body) {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// replica is another gateway of the same cluster and database.
func (c *chronicle) replica(t *testing.T) *gateway {
	t.Helper()
	api := httptest.NewServer(c.api)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	past := openJobs(t, store.Options{Address: "sqlite", StateDir: filepath.Dir(c.file)})
	return startGateway(t, c.api, cluster.Options{Name: "default", Kubeconfig: apitest.Kubeconfig(t, api.URL)}, listener, transport, c.patience, []option{func(g *gateway, o *Options) {
		g.access = c.access
		o.Authenticator, o.Authorizer, o.History = c.access, c.access, past
	}})
}

// TestSealedNumbersCountAtEachReplica that shares the database. Once its key is lost, clients begin
// anew, and nothing else is.
func TestSealedNumbersCountAtEachReplica(t *testing.T) {
	w := newWorld(t, 3)
	w.show()
	w.hide()
	w.show()
	other := w.replica(t)
	s := w.stream(allJobs, dan)
	defer s.close()
	s.expect("narrowed")
	seqs, ids := s.numbers(4)
	ids = append(ids, s.expect("synced").id)
	pages := allJobs + "?view=transitions&limit=1"
	_, token := itemsOf(t, w.get(pages, dan))
	w.show()
	for i, id := range ids {
		again := other.stream(allJobs, dan, "Last-Event-ID: "+id)
		again.expect("narrowed")
		left, _ := again.numbers(6 - min(i+1, 4))
		if want := seqs[min(i+1, 4):]; !slices.Equal(left[:len(want)], want) {
			t.Errorf("behind %s: %v, not %v", id, left, want)
		}
		again.close()
	}
	if items, _ := itemsOf(t, other.get(allJobs+"?view=transitions&limit=10&continue="+token, dan)); len(items) != 3 {
		t.Errorf("%v", items)
	}
	db, err := sql.Open("sqlite", w.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DELETE FROM secrets"); err != nil {
		t.Fatal(err)
	}
	later := w.replica(t)
	for _, id := range ids {
		again := later.stream(allJobs+"?limit=1", dan, "Last-Event-ID: "+id)
		again.expect("reset unreadable", "narrowed", "transition", "synced")
		again.close()
	}
	if a := later.get(allJobs+"?view=transitions&limit=10&continue="+token, dan); a.code != http.StatusGone {
		t.Errorf("%d %s", a.code, a.body)
	}
	if items, _ := itemsOf(t, later.get(allJobs+"?view=transitions", dan)); len(items) != 6 {
		t.Errorf("%v", items)
	}
}
