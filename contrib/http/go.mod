module github.com/berth-go/berth/contrib/http

go 1.26.0
