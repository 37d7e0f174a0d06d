package store

import (
	"bytes"
	"sync"
	"testing"
)

// However many replicas begin at once, they have one secret, and it stays.
func TestReplicasHaveOneSecret(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		secrets := make([][]byte, 8)
		var asking sync.WaitGroup
		for i := range secrets {
			asking.Go(func() {
				var err error
				if secrets[i], err = s.Secret(t.Context(), "numbers", []byte{byte(i), 0, 255}); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		for _, secret := range secrets {
			if len(secret) != 3 || !bytes.Equal(secret, secrets[0]) {
				t.Errorf("%x beside %x", secret, secrets[0])
			}
		}
		if other, err := s.Secret(t.Context(), "other", []byte{9}); err != nil || !bytes.Equal(other, []byte{9}) {
			t.Errorf("%x, %v", other, err)
		}
	})
}
