;;; eglot_turn.el --- One turn in Emacs with eglot  -*- lexical-binding: t; -*-

;; For Emacs 28 and newer: emacs --batch --load eglot_turn.el
;; The scene and the result are described in tests/support/foreign.py.

(require 'package)
(package-initialize) ; before Emacs 29 eglot is a package of its own
(unless (require 'eglot nil t)
  (message "there is no eglot")
  (kill-emacs 77))
(require 'json)

(defconst hang-seconds 30)
(defconst scene
  (with-temp-buffer
    (insert-file-contents (getenv "EDITOR_SCENE"))
    (json-parse-buffer :object-type 'plist)))

(defvar roles (make-hash-table :test #'equal))
(defvar blocks (make-hash-table :test #'equal))
(defvar texts nil "The assistant's text blocks, the last one first.")
(defvar change-sets nil)
(defvar last-seq 0)
(defvar edits 0)
(defvar stop-reason nil)

(defun scene-get (key)
  (plist-get scene key))

;; --- The stream -----------------------------------------------------------------------------

(defun fold-event (event)
  (let ((block-id (plist-get event :blockId))
        (message-id (plist-get event :messageId)))
    (setq last-seq (or (plist-get event :seq) last-seq))
    (pcase (plist-get event :type)
      ("message.added" (puthash message-id (plist-get event :role) roles))
      ("block.started"
       (puthash block-id (list :grown "") blocks)
       (when (and (equal (plist-get (plist-get event :block) :type) "text")
                  (equal (gethash message-id roles) "assistant"))
         (push block-id texts)))
      ("block.completed"
       (plist-put (gethash block-id blocks)
                  :completed (plist-get (plist-get event :block) :text)))
      ("changeSet.updated" (cl-pushnew (plist-get event :changeSetId) change-sets :test #'equal))
      ("turn.completed" (setq stop-reason (plist-get event :stopReason))))))

(defun fold-delta (delta)
  (let* ((block (gethash (plist-get delta :blockId) blocks))
         (grown (plist-get block :grown)))
    (cl-assert (= (length grown) (plist-get delta :at)))
    (plist-put block :grown (concat grown (plist-get delta :add)))))

(cl-defmethod eglot-handle-notification
  (_server (_method (eql 'kode/event)) &key events &allow-other-keys)
  (mapc #'fold-event events))

(cl-defmethod eglot-handle-notification
  (_server (_method (eql 'kode/delta)) &key deltas &allow-other-keys)
  (mapc #'fold-delta deltas))

(cl-defmethod eglot-handle-request :before
  (_server (_method (eql 'workspace/applyEdit)) &rest _)
  (cl-incf edits))

(defun texts-of (key)
  (vconcat (mapcar (lambda (id) (plist-get (gethash id blocks) key)) (reverse texts))))

;; --- The turn -------------------------------------------------------------------------------

(defun wait-for (what done)
  "Let messages come until the function DONE says so.
Emacs in batch is never idle, and when it is idle eglot tells the changes."
  (with-timeout (hang-seconds (error "Waited in vain for %s" what))
    (while (not (funcall done))
      (accept-process-output nil 0.02)
      (eglot--signal-textDocument/didChange))))

(defun ask (server method params)
  "The answer to METHOD.  What was typed is told first."
  (eglot--signal-textDocument/didChange)
  (let ((answer nil) (failed nil))
    (jsonrpc-async-request
     server method params
     :timeout hang-seconds
     :success-fn (lambda (result) (setq answer (list result)))
     :error-fn (lambda (failure) (setq failed failure)))
    (wait-for method (lambda () (or answer failed)))
    (when failed
      (error "%s: %S" method failed))
    (car answer)))

(defun open-unsaved ()
  (find-file (scene-get :file))
  (cl-assert (eq (coding-system-eol-type buffer-file-coding-system) 1))
  (setq-local require-final-newline nil)
  (erase-buffer)
  (insert (string-join (scene-get :lines) "\n"))
  (when (eq (scene-get :finalNewline) t)
    (insert "\n")))

(defun connect ()
  (let ((kode (scene-get :kode))
        (command (append (scene-get :command) nil)))
    (setq eglot-confirm-server-initiated-edits nil
          eglot-sync-connect t
          eglot-autoreconnect nil
          eglot-server-programs
          `((,major-mode
             . (,@command
                ,@(unless (eq kode :null) `(:initializationOptions (:kode ,kode)))))))
    (apply #'eglot (eglot--guess-contact))
    (or (eglot-current-server) (error "Eglot is not connected"))))

(defun as-saved ()
  "What saving would put on disk."
  (decode-coding-string
   (encode-coding-string (buffer-string) buffer-file-coding-system) 'utf-8-unix))

(defun run ()
  (open-unsaved)
  (let* ((server (connect))
         (session (ask server :kode/session/new (make-hash-table)))
         (prompt `[(:type "text" :text ,(scene-get :prompt))]))
    (ask server :kode/turn/start
         (list :sessionId (plist-get session :sessionId) :input prompt))
    (wait-for "turn.completed" (lambda () stop-reason))
    (goto-char (point-min))
    (insert (scene-get :typed) "\n")
    (cl-assert (= (length change-sets) 1))
    (let ((decided (ask server :kode/changeSet/decide
                        (list :changeSetId (car change-sets) :rest "accept" :seenSeq last-seq))))
      (eglot-shutdown server nil hang-seconds)
      (list :texts (texts-of :grown)
            :completed (texts-of :completed)
            :stopReason stop-reason
            :decided decided
            :edits edits
            :buffer (as-saved)
            :modified (if (buffer-modified-p) t :json-false)))))

(defun show-stderr ()
  "What the sidecar said, for the log of the test."
  (dolist (buffer (buffer-list))
    (when (string-suffix-p "stderr*" (buffer-name buffer))
      (message "%s" (with-current-buffer buffer (buffer-string))))))

(let ((result (condition-case failure
                  (run)
                (error (message "%S" failure)
                       (show-stderr)
                       (kill-emacs 1))))
      (coding-system-for-write 'utf-8-unix))
  (with-temp-file (scene-get :result)
    (json-insert result :false-object :json-false)))
(kill-emacs 0)
