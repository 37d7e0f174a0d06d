package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// etcd is called through its JSON gateway: the few calls that are needed do not justify its client and gRPC.

// etcdCall posts a request and decodes the reply.
func etcdCall(ctx context.Context, port int, path string, request, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, response.Status, bytes.TrimSpace(data))
	}
	return json.Unmarshal(data, reply)
}

// etcdRevision is etcd's current revision, which Kubernetes uses as the newest resourceVersion.
func etcdRevision(ctx context.Context, port int) (int64, error) {
	var reply struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	// Any key will do: the revision is in the header of the answer.
	request := map[string]any{"key": []byte("devcluster"), "keys_only": true}
	if err := etcdCall(ctx, port, "/v3/kv/range", request, &reply); err != nil {
		return 0, err
	}
	revision, err := strconv.ParseInt(reply.Header.Revision, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading etcd's revision: %w", err)
	}
	return revision, nil
}

// vanish deletes, in one revision, all keys below a prefix whose last segment begins with name. etcd does the same
// with all that is bound to a lease. It returns how many keys there were.
func vanish(ctx context.Context, port int, prefix, name string) (int, error) {
	var found struct {
		KVs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	end := []byte(prefix)
	end[len(end)-1]++
	request := map[string]any{"key": []byte(prefix), "range_end": end, "keys_only": true}
	if err := etcdCall(ctx, port, "/v3/kv/range", request, &found); err != nil {
		return 0, fmt.Errorf("listing %s: %w", prefix, err)
	}
	var deletions []any
	for _, kv := range found.KVs {
		if last := kv.Key[bytes.LastIndexByte(kv.Key, '/')+1:]; bytes.HasPrefix(last, []byte(name)) {
			deletions = append(deletions, map[string]any{"request_delete_range": map[string]any{"key": kv.Key}})
		}
	}
	if len(deletions) == 0 {
		return 0, nil
	}
	var reply struct{}
	if err := etcdCall(ctx, port, "/v3/kv/txn", map[string]any{"success": deletions}, &reply); err != nil {
		return 0, fmt.Errorf("deleting from %s: %w", prefix, err)
	}
	return len(deletions), nil
}

// compactEtcd drops all history before the revision. It returns when that is gone from the disk, too.
func compactEtcd(ctx context.Context, port int, revision int64) error {
	var reply struct{}
	request := map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}
	if err := etcdCall(ctx, port, "/v3/kv/compaction", request, &reply); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}
