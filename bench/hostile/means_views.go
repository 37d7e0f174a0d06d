//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// meansOfViews are counts and pages, lists in other forms, and what users ask about themselves.
var meansOfViews = []means{
	{name: "counts", what: "64 streams of 4 live counts, each by values of its own", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.views(ctx, func(number, watch int) string {
			return fmt.Sprintf("/api/v1/pods?countBy=%s", url.QueryEscape(fmt.Sprintf("metadata.name,status.x%d", number*100+watch)))
		}, 4)
	}},
	{name: "livepages", what: "64 streams of 4 live pages of 500 places, each in an order of its own, told every 10 ms", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.views(ctx, func(number, watch int) string {
			return fmt.Sprintf("/api/v1/pods?limit=500&conflate=10ms&sort=%s", url.QueryEscape(fmt.Sprintf("-metadata.resourceVersion,spec.a,spec.b,spec.c,spec.d,spec.e,spec.f,spec.x%d", number*100+watch)))
		}, 4)
	}},
	{name: "patchpages", what: "64 streams of 4 live pages of 500 places with fields= and deltas, all in one order", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.views(ctx, func(number, watch int) string {
			return fmt.Sprintf("/api/v1/pods?limit=500&conflate=10ms&sort=-metadata.resourceVersion&deltas=merge-patch&fields=metadata,spec,x%d", number*100+watch)
		}, 4)
	}},
	{name: "coded", what: "64 whole lists of pods at once in zstd, each with fields= of its own", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodGet, fmt.Sprintf("/api/v1/pods?fields=metadata,spec,x%d", number*1000+round), "", http.Header{"Accept-Encoding": {"zstd"}})
		})
	}},
	{name: "tables", what: "64 tables of pods at once", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodGet, "/api/v1/pods", "", http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}})
		})
	}},
	{name: "countlists", what: "64 counts of pods at once by two values of their own, with 64 terms", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.get(ctx, "/api/v1/pods?countBy="+url.QueryEscape(fmt.Sprintf("metadata.name,status.x%d", number*1000+round))+"&fieldSelector="+url.QueryEscape(terms(number*1000+round)))
		})
	}},
	{name: "rules", what: "64 SelfSubjectRulesReviews at once, each of a namespace of its own", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", fmt.Sprintf(`{"spec":{"namespace":"n-%d-%d"}}`, number, round), jsonBody)
		})
	}},
	{name: "reviews", what: "64 SelfSubjectAccessReviews at once, each of an object of its own", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", fmt.Sprintf(`{"spec":{"resourceAttributes":{"verb":"get","version":"v1","resource":"pods","namespace":"n-%d","name":"p-%d"}}}`, number, round), jsonBody)
		})
	}},
	{name: "sessions", what: "64 sessions begun at once", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.send(ctx, http.MethodPost, "/auth/session", "", jsonBody)
		})
	}},
	{name: "me", what: "64 times /auth/me at once, about 100 kinds in each", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.get(ctx, "/auth/me")
		})
	}},
	{name: "ids", what: "64 streams of 32 watches that come with a position of 32 long places, and leave", run: func(ctx context.Context, a *Attacker) {
		query := url.Values{"sendInitialEvents": {"false"}}
		for watch := range 32 {
			query.Set(fmt.Sprintf("w%d", watch), either(watch))
		}
		a.each(ctx, streamsOfUser, func(ctx context.Context, number, round int) bool {
			position := "e" + strings.Repeat("a", 40)
			for watch := range 32 {
				position += fmt.Sprintf(";w%d=%d", watch, round)
			}
			return a.ask(ctx, "/stream?"+query.Encode(), a.token, position, 200)
		})
	}},
}

// jsonBody is the header of a request with a body.
var jsonBody = http.Header{"Content-Type": {"application/json"}}

// views keeps as many streams open as a user may have, each with so many counts or pages.
func (a *Attacker) views(ctx context.Context, path func(number, watch int) string, watches int) {
	a.each(ctx, streamsOfUser, func(ctx context.Context, number, _ int) bool {
		query := url.Values{}
		for watch := range watches {
			query.Set(fmt.Sprintf("w%d", watch), path(number, watch))
		}
		return a.stream(ctx, "/stream?"+query.Encode(), "")
	})
}
