//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
)

// means is one way to harm others. It starts its goroutines and returns; they end with the context.
type means struct {
	name    string
	what    string
	streams bool // that last as long as the attack
	run     func(context.Context, *Attacker)
	history bool // it needs one
	changes bool // meanwhile the hostile user's jobs change in the cluster, too
}

const (
	streamsOfUser = 64 // this and the following are the gateway's own limits
	watchesOfUser = 256
	watchesOfOne  = 32
	termsOfOne    = 64
)

var allMeans = slices.Concat(meansOfKinds, meansOfViews, meansOfHistory)

// meansOfKinds are watches, lists, and connections.
var meansOfKinds = []means{
	{name: "fields", what: "64 streams of 4 watches, each with fields= of its own", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.streams(ctx, func(number, watch int) string {
			return fmt.Sprintf("%s?fields=metadata,x%d", either(watch), number*100+watch)
		}, 4)
	}},
	{name: "patches", what: "64 streams of 4 watches with deltas=merge-patch and fields= of their own", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.streams(ctx, func(number, watch int) string {
			return fmt.Sprintf("%s?deltas=merge-patch&fields=metadata,spec,data,x%d", either(watch), number*100+watch)
		}, 4)
	}},
	{name: "watches", what: "64 streams of 32 watches; beyond the limit they come again", run: func(ctx context.Context, a *Attacker) {
		a.streams(ctx, func(number, watch int) string {
			return fmt.Sprintf("%s?labelSelector=app!%%3Dx%d", either(watch), number*100+watch)
		}, watchesOfOne)
	}},
	{name: "selectors", what: "64 streams of 4 watches of pods of 20 KB, with 64 terms each", streams: true, run: func(ctx context.Context, a *Attacker) {
		a.streams(ctx, func(number, watch int) string {
			return "/api/v1/pods?fieldSelector=" + url.QueryEscape(terms(number*100+watch))
		}, 4)
	}},
	{name: "sorted", what: "2,000 sorted lists of pods at once, each in another order; after 429 they wait for a second, as they are told", run: func(ctx context.Context, a *Attacker) {
		a.patience = time.Second
		a.each(ctx, 2000, func(ctx context.Context, number, round int) bool {
			return a.get(ctx, fmt.Sprintf("/api/v1/pods?limit=1&sort=-spec.priority,spec.a,spec.b,spec.c,spec.d,spec.e,spec.f,spec.x%d",
				number*1000+round))
		})
	}},
	{name: "flood", what: "2,000 lists at once of one pod, and after 429 again at once", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 2000, func(ctx context.Context, _, _ int) bool { return a.get(ctx, "/api/v1/pods?limit=1") })
	}},
	{name: "left", what: "64 lists of pods by 64 terms at once, whose client leaves after 50 ms", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return a.get(ctx, "/api/v1/pods?fieldSelector="+url.QueryEscape(terms(number*1000+round)))
		})
	}},
	{name: "lists", what: "64 whole lists of pods (20 MB) at once, each with fields= of its own", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.get(ctx, fmt.Sprintf("/api/v1/pods?fields=metadata,spec,x%d", number*1000+round))
		})
	}},
	{name: "pages", what: "first pages of walks, 65 at once, of whatever version is newest", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 65, func(ctx context.Context, number, _ int) bool {
			return a.get(ctx, either(number)+"?limit=1")
		})
	}},
	{name: "slow", what: "64 snapshots and 64 lists of pods that nobody reads, again every 2 s", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 128, func(ctx context.Context, number, _ int) bool {
			return a.stall(ctx, "/api/v1/pods?"+[]string{"", "watch=true"}[number%2], 2*time.Second)
		})
	}},
	{name: "snapshots", what: "64 streams that begin with a snapshot of their own form, and leave after it", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, streamsOfUser, func(ctx context.Context, number, round int) bool {
			return a.ask(ctx, fmt.Sprintf("/stream?a=%s", url.QueryEscape(fmt.Sprintf("/api/v1/pods?fields=metadata,spec,x%d", number*1000+round))),
				a.token, "", 4<<20)
		})
	}},
	{name: "positions", what: "64 streams from made-up positions, again and again", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, streamsOfUser, func(ctx context.Context, number, _ int) bool {
			version := rand.Uint64N(1 << 40)
			if number%2 == 0 {
				version = 1 + rand.Uint64N(apiserver.FirstVersion)
			}
			return a.ask(ctx, either(number/2)+"?watch=true&resourceVersion="+strconv.FormatUint(version, 10), a.token, "", 100)
		})
	}},
	{name: "kinds", what: "lists of made-up kinds, 64 at once", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, round int) bool {
			return a.get(ctx, fmt.Sprintf("/apis/made%d.up/v1/kinds%d", round, number))
		})
	}},
	{name: "tokens", what: "forged tokens and none, 64 at once", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 64, func(ctx context.Context, number, _ int) bool {
			return a.ask(ctx, "/api/v1/configmaps?limit=1", forged(a.token, number), "", 1<<20)
		})
	}},
	{name: "connections", what: "2,000 connections that ask for nothing, and are opened again", run: func(ctx context.Context, a *Attacker) {
		a.each(ctx, 2000, func(ctx context.Context, _, _ int) bool {
			return a.stall(ctx, "", time.Second)
		})
	}},
}

func findMeans(name string) int {
	return slices.IndexFunc(allMeans, func(m means) bool { return m.name == name })
}

func either(number int) string { return "/api/v1/" + []string{"pods", "configmaps"}[number%2] }

// streams keeps as many streams open as a user may have, each with so many watches and without a snapshot.
func (a *Attacker) streams(ctx context.Context, path func(number, watch int) string, watches int) {
	a.each(ctx, streamsOfUser, func(ctx context.Context, number, _ int) bool {
		query := url.Values{"sendInitialEvents": {"false"}}
		for watch := range watches {
			query.Set(fmt.Sprintf("w%d", watch), path(number, watch))
		}
		return a.stream(ctx, "/stream?"+query.Encode(), "")
	})
}

// terms is a selector that selects everything, but has to look at the whole object for that, and that was not used
// before.
func terms(number int) string {
	var all []string
	for i := range termsOfOne {
		all = append(all, fmt.Sprintf("status.x%d.y%d!=z", number, i))
	}
	return strings.Join(all, ",")
}

// forged returns a token that differs from a good one in its signature or its content, or that is no token at all.
func forged(token string, number int) string {
	parts := strings.Split(token, ".")
	switch number % 3 {
	case 0:
		return ""
	case 1:
		parts[1] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"x%d","exp":4000000000}`, issuer, audience, rand.Uint64()))
	default:
		parts[2] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%064d", rand.Uint64()))
	}
	return strings.Join(parts, ".")
}
