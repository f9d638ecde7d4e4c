package capture

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// har reads the first POST of an HTTP archive.
// http://www.softwareishard.com/blog/har-12-spec/
func har(text []byte) (Request, error) {
	var archive struct {
		Log struct {
			Entries []struct {
				Request struct {
					Method  string `json:"method"`
					URL     string `json:"url"`
					Headers []struct {
						Name  string `json:"name"`
						Value string `json:"value"`
					} `json:"headers"`
					PostData *struct {
						Text     string `json:"text"`
						Encoding string `json:"encoding"`
					} `json:"postData"`
				} `json:"request"`
			} `json:"entries"`
		} `json:"log"`
	}
	if err := json.Unmarshal(text, &archive); err != nil {
		return Request{}, fmt.Errorf("read as a HAR file: %w", err)
	}
	for _, e := range archive.Log.Entries {
		if e.Request.Method != http.MethodPost && len(archive.Log.Entries) > 1 {
			continue
		}
		r := Request{Method: e.Request.Method, URL: e.Request.URL, Header: http.Header{}}
		for _, h := range e.Request.Headers {
			if len(h.Name) > 0 && h.Name[0] == ':' {
				continue // of HTTP/2
			}
			r.Header.Add(h.Name, h.Value)
		}
		if p := e.Request.PostData; p != nil {
			r.Body, r.HasBody = []byte(p.Text), true
			if p.Encoding == "base64" {
				b, err := base64.StdEncoding.DecodeString(p.Text)
				if err != nil {
					return r, errors.New("the body of the HAR file is not base64, and says it is")
				}
				r.Body = b
			}
		}
		return r, nil
	}
	return Request{}, errors.New("the HAR file holds no POST request")
}
