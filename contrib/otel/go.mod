module github.com/berth-go/berth/contrib/otel

go 1.26.0
