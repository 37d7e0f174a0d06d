package app

import "github.com/kubecast/kubecast/internal/auth"

// Token describes a token for development.
type Token = auth.DevelopmentToken

// SignToken signs a token with a development key, which is made if it does not exist.
func SignToken(token Token) (string, error) { return auth.SignDevelopmentToken(token) }
