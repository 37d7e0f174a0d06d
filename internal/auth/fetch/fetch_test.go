package fetch

import "testing"

func TestAddressesOfKeys(t *testing.T) {
	for url, want := range map[string]bool{
		"https://id.example.org/keys": true, "http://127.0.0.1:5556/keys": true, "http://[::1]/": true, "http://localhost/": true,
		"http://id.example.org/": false, "http://127.0.0.1.evil.example/": false, "http://localhost.evil.example/": false,
		"file:///etc/passwd": false, "": false, "keys": false, "//id.example.org": false, "https://": false, "http://10.0.0.1/": false,
	} {
		if Safe(url) != want {
			t.Errorf("%q: %v", url, !want)
		}
	}
}
