package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// hostile are texts by which a job's owner may try to write something else into a chat.
var hostile = []string{
	`"}], "text": "owned`, `<!channel> <@U1> <https://evil.example|click>`, "&lt;!here&gt;", "@all @channel @here", "[click](https://evil.example) **x** `y`",
	"![x](https://evil.example/x.png)", "# big\n- list\n> quote", "a\\\"b\\", "{{DATE(2020-01-01)}} ${x}", "\x00\x1b[31m\u202e", "| a | b |\n| - | - |", "~~x~~ :tada: <script>",
}

func eventWith(t *testing.T, message string, n int) cloudEvent {
	t.Helper()
	event := func() outbox.Event {
		return outbox.Event{Transition: wire.Transition{Cluster: "east", Namespace: "team-a", Name: "train", To: jobs.Failed, Reason: "Because", Message: message}}
	}
	var content any = event()
	m := &outbox.Message{MessageKey: outbox.MessageKey{Log: 1, Seq: 1}, ID: "msg_1"}
	if n > 0 {
		var many digest
		for range n {
			many.Transitions = append(many.Transitions, event())
		}
		content, m.Log = many, outbox.Digests.Log
	}
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	m.Body = string(text)
	made, err := eventOf(m)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func makeText(t *testing.T, expression string, event cloudEvent) string {
	t.Helper()
	b, err := newBody(expression)
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.make(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatAJobSaysIsNoMarkupInChats(t *testing.T) {
	for _, message := range hostile {
		event := eventWith(t, message, 0)
		var slack struct {
			Text   string `json:"text"`
			Mrkdwn *bool  `json:"mrkdwn"`
		}
		if err := json.Unmarshal([]byte(makeText(t, "slack", event)), &slack); err != nil || slack.Mrkdwn == nil || *slack.Mrkdwn || strings.ContainsAny(slack.Text, "<>\n\x00\x1b") {
			t.Errorf("slack, %q: %v, %+v", message, err, slack)
		}
		if plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(slack.Text); !strings.HasPrefix(plain, "team-a/train: Failed (Because): ") || !strings.HasSuffix(plain, readable(message)) {
			t.Errorf("slack, %q: reads %q", message, plain)
		}
		var mattermost map[string]string
		if err := json.Unmarshal([]byte(makeText(t, "mattermost", event)), &mattermost); err != nil || len(mattermost) != 1 {
			t.Fatalf("mattermost, %q: %v, %v", message, err, mattermost)
		}
		rest := mattermost["text"]
		for len(rest) > 0 {
			switch {
			case rest[0] == '\\':
				rest = rest[2:]
				continue
			case strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "@\u200b"), strings.ContainsRune("`*_[]<>#!|~:", rune(rest[0])):
				t.Errorf("mattermost, %q: markup at %q", message, rest)
			}
			rest = rest[1:]
		}
		var teams struct {
			Type        string
			Attachments []struct {
				Content struct {
					Type string
					Body []struct {
						Type    string
						Inlines []map[string]string
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(makeText(t, "teams", event)), &teams); err != nil || teams.Type != "message" || len(teams.Attachments) != 1 || len(teams.Attachments[0].Content.Body) != 1 {
			t.Fatalf("teams, %q: %v, %+v", message, err, teams)
		}
		block := teams.Attachments[0].Content.Body[0] // the one block whose text has no Markdown
		if block.Type != "RichTextBlock" || block.Inlines[0]["type"] != "TextRun" || !strings.HasSuffix(block.Inlines[0]["text"], readable(message)) {
			t.Errorf("teams, %q: %+v", message, block)
		}
	}
}

// What a chat is told is why the job ended, not what its controller made of that; and a stranger's words in it are no markup, either.
func TestALineSaysWhyAJobEnded(t *testing.T) {
	for _, text := range append(hostile, "main was OOM-killed (exit 137) on gpu-07") {
		content, err := json.Marshal(outbox.Event{Transition: wire.Transition{
			Namespace: "team-a", Name: "train", To: jobs.Failed, Reason: "BackoffLimitExceeded", Message: "m", Cause: &jobs.Cause{Text: text},
		}})
		if err != nil {
			t.Fatal(err)
		}
		event, err := eventOf(&outbox.Message{MessageKey: outbox.MessageKey{Log: 1, Seq: 1}, ID: "msg_1", Body: string(content)})
		if err != nil {
			t.Fatal(err)
		}
		var slack struct{ Text string }
		if err := json.Unmarshal([]byte(makeText(t, "slack", event)), &slack); err != nil || strings.ContainsAny(slack.Text, "<>\n\x00\x1b") {
			t.Errorf("slack, %q: %v, %q", text, err, slack.Text)
		}
		if plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(slack.Text); plain != readable("team-a/train: Failed: "+text) {
			t.Errorf("slack, %q: reads %q", text, plain)
		}
	}
}

func TestBodiesAreBoundedAndOfAnyShape(t *testing.T) {
	many := eventWith(t, strings.Repeat("x", 1024), 1000)
	for name := range readyMade {
		if text := makeText(t, name, many); len(text) > 20_000 || !strings.Contains(text, "and 980 more") {
			t.Errorf("%s of a digest has %d bytes", name, len(text))
		}
		if text := makeText(t, name, testEvent("msg_1", 1)); !strings.Contains(text, "this is a test") {
			t.Errorf("%s of a test: %s", name, text)
		}
	}
	for expression, wanted := range map[string]string{
		`{"job": event.subject, "n": 1, "ok": true, "none": null}`: `{"job":"team-a/train","n":1,"none":null,"ok":true}`,
		`[event.type, event.data.transition.to]`:                   `["io.kubecast.job.transition","Failed"]`,
		`event.data.transition.message`:                            `"\"\n\u003c"`,
		`event.data.?transitions.orValue([])`:                      `[]`,
	} {
		if got := makeText(t, expression, eventWith(t, "\"\n<", 0)); got != wanted {
			t.Errorf("%s: %s, want %s", expression, got, wanted)
		}
	}
	for expression, wanted := range map[string]string{
		`event.`: "Syntax error", `1 + 1`: "gives int, not a map", `job`: "undeclared reference", `slak("x")`: "undeclared reference",
	} {
		if err := check([]Target{{Body: expression}}); err == nil || !strings.Contains(err.Error(), "webhooks[0].body: ") || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", expression, err)
		}
	}
	costly, err := newBody(`[0,1,2,3,4,5,6,7,8,9].map(a, event.data.transitions.map(b, event.data.transitions.map(c, b)))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := costly.make(many); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("a body without end: %v", err)
	}
}

func TestADigestIsOneMessageOfAll(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a", Digest: time.Second})
	fail := true
	rec := newReceiver(t, nil)
	rec.answer = func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if fail {
			fail = false
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	_, stop := p.start(Target{Name: "a", URL: rec.URL, Digest: time.Second})
	for _, uid := range numbered("u", 30) {
		p.write(uid, jobs.Failed)
	}
	until(t, "the first attempt failed", func() bool { return len(rec.arrivals()) == 1 })
	stop() // what was composed does not depend on who sends it
	p.write("later", jobs.Failed)
	p.start(Target{Name: "a", URL: rec.URL, Digest: time.Second})
	until(t, "nothing waits", func() bool { n, _ := p.waiting("a"); return n == 0 })
	all := rec.arrivals()
	if len(all) != 3 || all[0].id != all[1].id || string(all[0].body) != string(all[1].body) || all[2].id == all[0].id {
		t.Fatalf("%d requests", len(all))
	}
	var told []string
	for _, a := range all[1:] {
		var event struct {
			Type string
			Data digest
		}
		if err := json.Unmarshal(a.body, &event); err != nil || event.Type != typeDigest {
			t.Fatalf("%v, %s", err, event.Type)
		}
		for _, e := range event.Data.Transitions {
			told = append(told, e.Transition.UID)
		}
	}
	if len(told) != 31 || told[30] != "later" {
		t.Errorf("told of %v", told)
	}
}

func TestOperatorsSeeNoSecretAndCanTryATarget(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, r.Header.Get("Content-Type"))
	}))
	defer server.Close()
	senders, _ := p.start(Target{Name: "a", URL: server.URL + "/hunter2?token=hunter2"})
	var all []Status
	until(t, "it has begun", func() bool { all = senders.Status(t.Context()); return all[0].Err == nil && all[0].Held })
	if all[0].Address != server.URL {
		t.Errorf("%q", all[0].Address)
	}
	answer, err := senders.Test(t.Context(), "a")
	if err != nil || answer != "refused: 418 I'm a teapot: application/cloudevents+json" {
		t.Errorf("%q, %v", answer, err)
	}
	server.Close()
	if answer, err := senders.Test(t.Context(), "a"); err != nil || !strings.HasPrefix(answer, "unreachable: ") || strings.Contains(answer, "hunter2") {
		t.Errorf("%q, %v", answer, err)
	}
	if _, err := senders.Test(t.Context(), "b"); err != ErrNoTarget {
		t.Error(err)
	}
}
