module github.com/berth-go/berth/contrib/cron

go 1.26.0
