package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// webhooks checks what can be said without the files and the templates: package app asks them. It shows no URL, since
// whoever knows that of a chat's webhook may write there.
func (f *faults) webhooks(c Config) {
	if len(c.Webhooks) > 0 && c.History.Database == HistoryNone {
		f.add(0, "webhooks", "given though history.database is none; allowed: with a history")
	}
	var clusters []string
	for _, cluster := range c.Clusters {
		clusters = append(clusters, cluster.Name)
	}
	for i, w := range c.Webhooks {
		key := fmt.Sprintf("webhooks[%d]", i)
		switch {
		case !dnsLabel.MatchString(w.Name):
			f.refuse(key+".name", w.Name, "a DNS label: up to 63 of a-z, 0-9 and -, not at the ends")
		case slices.ContainsFunc(c.Webhooks[:i], func(other Webhook) bool { return other.Name == w.Name }):
			f.refuse(key+".name", w.Name, "a name that no other webhook has")
		}
		switch {
		case w.URL != "" && w.URLFile != "":
			f.add(0, key+".urlFile", "given beside url; allowed: one of the two")
		case w.URLFile == "":
			if err := CheckWebhookURL(w.URL); err != nil {
				f.add(0, key+".url", "%v", err)
			}
		}
		if len(w.States) == 0 {
			f.refuse(key+".states", "[]", "one state or more")
		}
		for n, state := range w.States {
			f.oneOf(fmt.Sprintf("%s.states[%d]", key, n), state, JobStates...)
		}
		for n, namespace := range w.Namespaces {
			if !dnsLabel.MatchString(namespace) {
				f.refuse(fmt.Sprintf("%s.namespaces[%d]", key, n), namespace, "the name of a namespace; [] for all")
			}
		}
		for n, cluster := range w.Clusters {
			if !slices.Contains(clusters, cluster) {
				f.refuse(fmt.Sprintf("%s.clusters[%d]", key, n), cluster, strings.Join(clusters, ", "))
			}
		}
		if w.Digest != 0 {
			f.between(key+".digest", w.Digest, time.Second, 24*time.Hour)
		}
		if w.Concurrency < 1 || w.Concurrency > 64 {
			f.refuse(key+".concurrency", w.Concurrency, "1 to 64")
		}
	}
}

// CheckWebhookURL says what a webhook's URL may be. The error does not show it.
func CheckWebhookURL(text string) error {
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("what is given is no such URL; allowed: an http or https URL without a fragment")
	}
	return nil
}
