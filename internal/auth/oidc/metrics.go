package oidc

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/session"
)

func newLogins(registerer prometheus.Registerer) *prometheus.CounterVec {
	logins := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubecast_auth_logins_total",
		Help: "Steps of logins at the provider: begun, finished, renewed, ended (by the provider); by result: ok, refused, unavailable (the provider, or its keys).",
	}, []string{"step", "result"})
	for _, step := range []string{"begun", "finished", "renewed", "ended"} {
		for _, result := range []string{"ok", "refused", "unavailable"} {
			logins.WithLabelValues(step, result)
		}
	}
	if registerer != nil {
		registerer.MustRegister(logins)
	}
	return logins
}

// count counts a step of a login.
func (l *Login) count(step string, err error) {
	result := "ok"
	switch {
	case errors.Is(err, auth.ErrBadToken), errors.Is(err, ErrRefused), errors.Is(err, ErrDenied), errors.Is(err, session.ErrTooLarge):
		result = "refused"
	case err != nil:
		result = "unavailable"
	}
	l.logins.WithLabelValues(step, result).Inc()
}
