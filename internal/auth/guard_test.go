package auth

import (
	"context"
	"testing"
)

// allowing allows everything, and counts the questions.
type allowing struct{ asked int }

func (a *allowing) Authorize(context.Context, Identity, Request) (Decision, error) {
	a.asked++
	return Decision{Allowed: true}, nil
}

func (a *allowing) Scope(context.Context, Identity, Request) (Scope, error) {
	a.asked++
	return Scope{All: true}, nil
}

func (*allowing) Changes(Identity, func()) (stop func()) { return func() {} }

// ServiceAccounts of the same name in two clusters are different identities.
func TestServiceAccountsHaveNoPermissionsElsewhere(t *testing.T) {
	behind := &allowing{}
	g := NewGuard(behind, nil)
	request := Request{Cluster: "default", Verb: "watch", Group: "batch", Version: "v1", Resource: "jobs", Subresource: "status", Namespace: "ns", Name: "n"}
	everywhere := Request{Cluster: "default", Verb: "list", Resource: "pods"}
	bot := Identity{Username: serviceAccount, Cluster: "default"}
	if d, err := g.Authorize(t.Context(), bot, request); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if s, err := g.Scope(t.Context(), bot, everywhere); err != nil || !s.All {
		t.Errorf("%+v, %v", s, err)
	}
	before := behind.asked
	elsewhere := request
	elsewhere.Cluster = "other"
	if d, err := g.Authorize(t.Context(), bot, elsewhere); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if s, err := g.Scope(t.Context(), bot, elsewhere); err != nil || !s.Empty() {
		t.Errorf("%+v, %v", s, err)
	}
	if behind.asked != before || before != 2 {
		t.Error("the other cluster was asked")
	}
}
