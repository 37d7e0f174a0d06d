//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// proxies are what clients come through. Each prefers the replica with the fewest connections.
var proxies = map[string]func(dir, address string, all []*replica) (config string, args []string){
	"nginx":   nginx,
	"haproxy": haproxy,
}

// startProxy starts a proxy in a directory of its own.
func startProxy(name, dir, address string, all []*replica) (*process.Process, error) {
	binary, err := binaryOf(name)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	config, args := proxies[name](dir, address, all)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	return process.Start(cmd)
}

// binaryOf finds a proxy, also where Debian keeps servers.
func binaryOf(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

func nginx(dir, address string, all []*replica) (config string, args []string) {
	var servers strings.Builder
	for _, r := range all {
		fmt.Fprintf(&servers, "  server %s max_fails=0;\n", r.public) // docs/clients.md
	}
	return fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr error; worker_rlimit_nofile 20000;
events { worker_connections 19000; }
http {
 access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
 upstream gateways {
  least_conn;
%[3]s }
 server {
  listen %[2]s backlog=4096;
  location / {
   proxy_pass https://gateways; proxy_http_version 1.1; proxy_buffering off; proxy_connect_timeout 2s; proxy_read_timeout 60s;
   proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  }
 }
}
`, dir, address, servers.String()), []string{"-p", dir, "-c", filepath.Join(dir, "config")}
}

func haproxy(dir, address string, all []*replica) (config string, args []string) {
	var servers strings.Builder
	for i, r := range all {
		fmt.Fprintf(&servers, "  server g%d %s ssl verify none no-check-ssl check inter 1s fall 1 rise 1 addr %s port %s\n", i, r.public, strings.Split(r.ops, ":")[0], strings.Split(r.ops, ":")[1])
	}
	return fmt.Sprintf(`global
  maxconn 9000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 3s
  retries 3
  retry-on conn-failure
  option redispatch 1
  option http-no-delay
  option forwardfor
frontend clients
  bind %s backlog 4096
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
%s`, address, servers.String()), []string{"-db", "-f", filepath.Join(dir, "config")}
}
