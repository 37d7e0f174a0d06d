package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

// Secret is the secret of a name. If there is none, it becomes the one that is proposed, unless
// another replica comes before.
func (s *Store) Secret(ctx context.Context, name string, proposed []byte) ([]byte, error) {
	secret, err := s.secret(ctx, name)
	if !errors.Is(err, sql.ErrNoRows) { // so nothing is written where it is there, also to a disk that is full
		return secret, err
	}
	if _, err := s.execute(ctx, `INSERT INTO secrets (name, secret) VALUES (?, ?)`+s.dialect.upsert([]string{"name"}, nil), name, hex.EncodeToString(proposed)); err != nil {
		return nil, fmt.Errorf("write the secret %s: %w", name, err)
	}
	return s.secret(ctx, name)
}

func (s *Store) secret(ctx context.Context, name string) (secret []byte, err error) {
	var text string
	if err = s.QueryRow(ctx, `SELECT secret FROM secrets WHERE name = ?`, name).Scan(&text); err == nil {
		secret, err = hex.DecodeString(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", name, err)
	}
	return secret, nil
}
