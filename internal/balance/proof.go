package balance

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Replicas do not send each other the token that they share: whoever can give their name further addresses would get it.
// Each proves to the other that it knows the token. The question is signed with its time, and is of no use later; the answer
// with the question's nonce, and is no answer to another one.

const (
	scheme      = "Kubecast-HMAC"  // of Authorization: scheme TIME:NONCE:MAC
	proofHeader = "Kubecast-Proof" // of the answer
	// skew is how far replicas' clocks may differ. Whoever repeats a question within it learns how many streams there are.
	skew = 5 * time.Minute
)

// question is what is signed.
type question struct{ time, nonce string }

// sign has a request prove that who asks knows the token; "": there is none.
func sign(r *http.Request, token string, now time.Time) question {
	q := question{strconv.FormatInt(now.Unix(), 10), rand.Text()}
	if token != "" {
		r.Header.Set("Authorization", scheme+" "+q.time+":"+q.nonce+":"+q.mac(token, "question", nil))
	}
	return q
}

func (q question) mac(token, what string, text []byte) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte("kubecast load " + what + "\n" + q.time + "\n" + q.nonce + "\n"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// isProof reports whether an answer is from one who knows the token, and to this question.
func (q question) isProof(token, proof string, text []byte) bool {
	return hmac.Equal([]byte(proof), []byte(q.mac(token, "answer", text)))
}

// Asker is a replica that has asked for the load. The zero value is somebody else.
type Asker struct {
	question
	token string // by which it has proved that it is one
}

// AskerOf reports whether a request is one of a replica that knows one of the tokens.
func AskerOf(r *http.Request, tokens []string, now time.Time) (Asker, bool) {
	name, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(given, ":")
	if name != scheme || len(parts) != 3 {
		return Asker{}, false
	}
	q := question{parts[0], parts[1]}
	seconds, err := strconv.ParseInt(q.time, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > skew {
		return Asker{}, false
	}
	for _, token := range tokens {
		if hmac.Equal([]byte(parts[2]), []byte(q.mac(token, "question", nil))) {
			return Asker{q, token}, true
		}
	}
	return Asker{}, false
}

// Answer tells the load, and proves to a replica that it is one's.
func (a Asker) Answer(w http.ResponseWriter, load Load) {
	text, err := json.Marshal(load)
	if err != nil {
		panic(err) // a string and a number
	}
	w.Header().Set("Content-Type", "application/json")
	if a.token != "" {
		w.Header().Set(proofHeader, a.mac(a.token, "answer", text))
	}
	_, _ = w.Write(text) // a replica that has gone is no error
}
