;;; plain_emacs.el --- Stock Emacs with eglot, driven by a test  -*- lexical-binding: t; -*-

;; emacs --batch --load plain_emacs.el
;; EDITOR_PORT is where the test listens: a line of JSON with a function and its arguments comes,
;; a line with its result goes back. The functions are those of plain_init.lua.

(require 'package)
(package-initialize) ; before Emacs 29 eglot is a package of its own
(require 'eglot)
(require 'json)
(require 'subr-x)

(defconst hang-seconds 45)
;; A slow machine may load the agent for longer than Emacs waits.
(setq jsonrpc-default-request-timeout hang-seconds)
(defvar answers nil "What the user chooses, the next one first.")
(defvar test-lines nil "What the test asked for and nobody has done yet.")
(defvar code-folder default-directory)

;; --- The user's configuration: what the README says ------------------------------------------

(add-to-list 'auto-mode-alist '("\\.md\\'" . text-mode))
(setq eglot-server-programs
      `(((python-mode text-mode) . ,(append (json-parse-string (getenv "EDITOR_SERVER")) nil))))
;; The chat documents belong to the project that one works in, and so to its server.
(add-hook 'project-find-functions
          (lambda (folder)
            (when (string-match-p "/chats/" folder)
              (or (project-current nil code-folder) (cons 'transient code-folder)))))
(defvar other-folders nil "What is worked on beside the project.")
(cl-defmethod project-external-roots ((_project (head transient)))
  other-folders)

(setq eglot-confirm-server-initiated-edits nil
      eglot-sync-connect t
      eglot-autoreconnect nil
      create-lockfiles nil
      make-backup-files nil
      auto-save-default nil)

;; --- The user --------------------------------------------------------------------------------

(setq-default case-fold-search nil)

(defun choice (label candidates)
  (or (seq-find (lambda (one) (string-match-p (regexp-quote label) one)) candidates)
      (error "%S is none of %S" label candidates)))

(defun completing-read-of-test (_prompt items &rest _)
  (choice (or (pop answers) "") (mapcar (lambda (one) (if (consp one) (car one) one)) items)))

(advice-add 'completing-read :override #'completing-read-of-test)
(advice-add 'y-or-n-p :override #'always)
(advice-add 'yes-or-no-p :override #'always)

(defun buffer-of (uri)
  (seq-find (lambda (one)
              (string-suffix-p uri (or (buffer-file-name one) "")))
            (buffer-list)))

(defun text-of (uri)
  (let ((buffer (buffer-of uri)))
    (if buffer (with-current-buffer buffer (buffer-substring-no-properties 1 (point-max))) "")))

(defun messages ()
  (with-current-buffer (messages-buffer) (buffer-string)))

(defun let-come ()
  "Let messages come; Emacs in batch is never idle, and when it is eglot sends the changes."
  (accept-process-output nil 0.02)
  (dolist (server (apply #'append (hash-table-values eglot--servers-by-project)))
    ;; Emacs 28 leaves unread what came in one piece with the answer to its request.
    (let ((process (jsonrpc--process server)))
      (when (process-live-p process)
        (funcall (process-filter process) process ""))))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (bound-and-true-p eglot--managed-mode)
        (eglot--signal-textDocument/didChange)))))

(defun wait-for (what done)
  (with-timeout (hang-seconds (error "No %s\n%s" what (messages)))
    (while (not (funcall done))
      (let-come))))

(defun open-chat ()
  "Open the chat document, which this Emacs cannot be asked to show."
  (dolist (one (file-expand-wildcards (expand-file-name "chats/*.md" (getenv "KODE_HOME"))))
    (unless (find-buffer-visiting one)
      (find-file-noselect one))))

(defun go-to (line)
  (goto-char (point-min))
  (forward-line line))

;; --- What a test asks for --------------------------------------------------------------------

(defun plain-open (path)
  (find-file (expand-file-name path code-folder))
  (when (derived-mode-p 'python-mode 'text-mode)
    (unless (eglot-current-server)
      (apply #'eglot (eglot--guess-contact)))
    (wait-for "server" (lambda () (bound-and-true-p eglot--managed-mode))))
  (file-relative-name buffer-file-name code-folder))

(defun plain-act (uri first last words)
  (with-current-buffer (buffer-of uri)
    (let ((last-nonmenu-event ?x)
          (begin (progn (go-to first) (point)))
          (end (when (> last first) (go-to last) (line-end-position))))
      (goto-char begin)
      (let-come)
      (push words answers)
      (eglot-code-actions begin end nil t))))

(defun plain-run (command &rest arguments)
  (let ((server (with-current-buffer (or (buffer-of "a.py") (current-buffer))
                  (eglot-current-server))))
    (jsonrpc-request server :workspace/executeCommand
                     (list :command command :arguments (vconcat arguments)))))

(defun plain-answer (words)
  (setq answers (append answers (list words))))

(defun plain-insert (uri line text)
  (with-current-buffer (buffer-of uri)
    (save-excursion
      (if (< line 0) (goto-char (point-max)) (go-to line))
      (insert text "\n"))
    (let-come)))

(defun plain-save (uri)
  (with-current-buffer (buffer-of uri)
    (save-buffer)))

(defun plain-text (uri)
  (text-of uri))

(defun plain-wait_text (uri words)
  (wait-for (format "%S in %s" words uri)
            (lambda ()
              (when (equal uri ".md")
                (open-chat))
              (string-search words (text-of uri)))))

(defun hunks-of (uri)
  (with-current-buffer (buffer-of uri)
    (flymake-start)
    (sort
     (mapcar (lambda (one) (1- (line-number-at-pos (flymake-diagnostic-beg one))))
             (seq-filter (lambda (one) (string-match-p "kode.*propose" (flymake-diagnostic-text one)))
                         (flymake-diagnostics)))
     #'<)))

(defun plain-wait_hunks (uri count &optional first)
  (let (seen)
    (wait-for (format "%s hunks at %s in %s" count first uri)
              (lambda ()
                (setq seen (hunks-of uri))
                (and (= (length seen) count) (or (null first) (= (car seen) first)))))
    (vconcat seen)))

(defun plain-wait_message (words)
  (wait-for (format "message %S" words) (lambda () (string-search words (messages)))))

(defun plain-add_folder (path)
  (setq other-folders (list (file-name-as-directory path)))
  (with-current-buffer (buffer-of "a.py")
    (eglot-reconnect (eglot-current-server))))

(defun plain-restart ()
  (let ((server (with-current-buffer (buffer-of "a.py") (eglot-current-server))))
    (delete-process (jsonrpc--process server))
    (wait-for "end of the server" (lambda () (not (jsonrpc-running-p server))))))

;; --- The connection to the test --------------------------------------------------------------

(defvar test-received "")

(defun receive (_process text)
  (setq test-received (concat test-received text))
  (while (string-match "\n" test-received)
    (push (substring test-received 0 (match-beginning 0)) test-lines)
    (setq test-received (substring test-received (match-end 0)))))

(defun serve (test)
  (while (process-live-p test)
    (let-come)
    (let ((line (pop test-lines)))
      (when line
        (pcase-let* ((`(,name . ,arguments) (json-parse-string line :array-type 'list :object-type 'plist))
                     (answer (condition-case failure
                                 (list :result (apply (intern (concat "plain-" name)) arguments))
                               (error (list :error (format "%s" failure))))))
          (process-send-string test (concat (json-encode answer) "\n")))))))

(serve (make-network-process :name "test" :host "127.0.0.1" :coding 'utf-8-unix :noquery t
                             :service (string-to-number (getenv "EDITOR_PORT"))
                             :filter #'receive))
(kill-emacs 0)
