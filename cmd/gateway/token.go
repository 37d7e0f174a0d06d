package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/devtoken"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// token signs a token with a development key.
func token(_ context.Context, args []string, out io.Writer) error {
	flags := newFlags("token", "signs a token with a development key, for demonstrations and tests", out)
	var groups list
	flags.Var(&groups, "group", "`name` of a group; may be given several times")
	key := flags.String("key", "", "`file` with the private key; made if it is not there, its public half as FILE.pub")
	user := flags.String("user", "", "`name` of the user")
	issuer := flags.String("issuer", "https://kubecast.local", "`URL` of the issuer, as in auth.jwt")
	audience := flags.String("audience", "kubecast", "`name` of the audience, as in auth.jwt")
	ttl := flags.Duration("ttl", time.Hour, "how long the token is valid")
	if err := flags.parse(args, 0); err != nil {
		return err
	}
	if *key == "" || *user == "" {
		return errors.New("token: --key FILE and --user NAME are required")
	}
	signed, err := devtoken.Sign(devtoken.Token{
		KeyFile: *key, User: *user, Groups: groups, Issuer: *issuer, Audience: *audience, TTL: *ttl,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, signed)
	return nil
}
